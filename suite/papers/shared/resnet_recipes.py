"""ResNet18 on CIFAR-10 as Cordonnier et al. train it: their baseline, and the teacher of ConViT's distillation."""

from suite.spec.experiment import Experiment
from suite.spec.recipe import Recipe

RESNET = Recipe(
    name="cordonnier_resnet",
    epochs=300,
    batch_size=100,
    optimizer="sgd",
    learning_rate=0.1,
    momentum=0.9,
    weight_decay=1e-4,
    decay_biases=True,
    schedule="multistep",
    schedule_unit="epoch",
    milestones=(80, 150, 250),
    crop="pad",
    crop_padding=4,
    flip_probability=0.5,
)
"""Table 2 of arXiv:1911.03584, and what only the authors' code says: the augmentation, weight decay on every parameter,
and a tenth of the learning rate from epochs 80, 150 and 250 on, which changes once an epoch."""


def resnet18() -> Experiment:
    """ResNet18 on CIFAR-10 by ``RESNET``, normalized as in the authors' code."""
    return Experiment(
        model="resnet18_cifar", dataset="cifar10", image_size=32, normalization="cordonnier", recipe=RESNET
    )
