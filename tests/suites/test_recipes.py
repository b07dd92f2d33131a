"""Every training of the profile ``paper``, field by field, against what its authors' paper and code say.

Sources: DeiT's repository (main.py, datasets.py) as ConViT and CMHSA take it over; epfml/attention-cnn; the commands of
osiriszjq/structured_init and of ConvMixer with timm's defaults. "bf16" stands for their fp16 with loss scaling.
"""

import pytest

from imagesets.catalog import get_info, statistics
from suite.papers import get_suite, list_suites
from suite.papers.structured_init.recipes import IMAGENET_AS_THE_CODE, imagenet_vit
from suite.spec.recipe import Recipe

OFF = {
    "optimizer": "adamw", "adam_epsilon": 1e-8, "momentum": 0, "weight_decay": 0, "decay_biases": False,
    "clip_grad_norm": 0, "schedule": "cosine", "schedule_unit": "epoch", "schedule_epochs": 0, "schedule_lag_epochs": 0,
    "milestones": (), "warmup_epochs": 0, "cosine_after_warmup": False, "warmup_learning_rate": 0,
    "min_learning_rate": 0, "label_smoothing": 0, "drop_path": 0, "crop": "none", "crop_padding": 0,
    "train_interpolation": "bicubic", "test_crop": 0.875, "flip_probability": 0.5, "rand_augment": "",
    "color_jitter": 0, "random_erasing": 0, "mixup": 0, "cutmix": 0, "mix_switch_probability": 0, "mix_group": 0,
    "repeated_augmentation": 1, "precision": "bf16",
}  # fmt: skip
RAND_AUGMENT = "rand-m9-mstd0.5-inc1"
MIXED = {"mixup": 0.8, "cutmix": 1.0, "mix_switch_probability": 0.5}
PLAIN_DEIT = OFF | {
    "weight_decay": 0.05, "schedule_lag_epochs": 1, "warmup_epochs": 5, "warmup_learning_rate": 1e-6,
    "min_learning_rate": 1e-5, "crop": "random_resized",
}  # fmt: skip
DEIT = PLAIN_DEIT | MIXED | {
    "label_smoothing": 0.1, "drop_path": 0.1, "rand_augment": RAND_AUGMENT, "color_jitter": 0.4,
    "random_erasing": 0.25, "repeated_augmentation": 3,
}  # fmt: skip
SGD = OFF | {
    "optimizer": "sgd", "momentum": 0.9, "weight_decay": 1e-4, "decay_biases": True, "crop": "pad", "crop_padding": 4,
    "precision": "fp32", "batch_size": 100, "epochs": 300, "learning_rate": 0.1,
}  # fmt: skip
TIMM = OFF | {"adam_epsilon": 1e-3, "label_smoothing": 0.1, "rand_augment": RAND_AUGMENT}
TIMM_CIFAR = TIMM | {
    "batch_size": 512, "weight_decay": 0.01, "clip_grad_norm": 3.0, "warmup_epochs": 10, "warmup_learning_rate": 1e-5,
    "min_learning_rate": 1e-6, "test_crop": 1.0,
}  # fmt: skip
TIMM_IMAGENET = TIMM | {
    "epochs": 300, "crop": "random_resized", "train_interpolation": "random", "test_crop": 0.9, "random_erasing": 0.25,
    "mix_switch_probability": 0.5,
}  # fmt: skip

IMAGENET_STATISTICS = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CORDONNIERS_STATISTICS = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
THE_SETS_OWN = None

AUTHORS = {
    "ConViT": (DEIT | {"batch_size": 1024, "learning_rate": 1e-3, "mix_group": 256}, IMAGENET_STATISTICS),
    "ConViT B": (DEIT | {"batch_size": 1024, "learning_rate": 1e-3, "mix_group": 64}, IMAGENET_STATISTICS),
    "ConViT +": (DEIT | {"batch_size": 512, "learning_rate": 4e-4, "mix_group": 64}, IMAGENET_STATISTICS),
    "CMHSA": (DEIT | {"batch_size": 128, "mix_group": 32}, IMAGENET_STATISTICS),
    "CMHSA's DeiT": (
        DEIT | {"batch_size": 128, "epochs": 400, "learning_rate": 1.25e-4, "mix_group": 32},
        IMAGENET_STATISTICS,
    ),
    "CMHSA's ViT": (PLAIN_DEIT | {"batch_size": 128, "epochs": 400, "learning_rate": 1.25e-4}, IMAGENET_STATISTICS),
    "Cordonnier's attention": (
        SGD | {"schedule_epochs": 300.6, "warmup_epochs": 15.03, "cosine_after_warmup": True},
        CORDONNIERS_STATISTICS,
    ),
    "Cordonnier's pruned": (
        SGD | {"schedule_epochs": 100.2, "warmup_epochs": 5.01, "cosine_after_warmup": True, "epochs": 100,
               "learning_rate": 0.01},
        CORDONNIERS_STATISTICS,
    ),
    "Cordonnier's ResNet18": (SGD | {"schedule": "multistep", "milestones": (80, 150, 250)}, CORDONNIERS_STATISTICS),
    "structured init": (TIMM_CIFAR | {"epochs": 200, "learning_rate": 1e-3}, THE_SETS_OWN),
    "structured init's ConvMixer": (TIMM_CIFAR | {"epochs": 100, "learning_rate": 0.01}, THE_SETS_OWN),
    "structured init on ImageNet": (
        TIMM_IMAGENET | {"batch_size": 640, "learning_rate": 0.01, "weight_decay": 2e-5, "clip_grad_norm": 1.0,
                         "schedule": "one_cycle", "schedule_unit": "step", "mixup": 0.5, "cutmix": 0.5,
                         "mix_group": 64},
        HALVES,
    ),
    "structured init on ImageNet as the code": (
        TIMM_IMAGENET | {"batch_size": 4096, "learning_rate": 4e-3, "weight_decay": 0.05, "adam_epsilon": 1e-8,
                         "warmup_epochs": 50, "warmup_learning_rate": 1e-5, "mixup": 1.0, "cutmix": 0.8,
                         "mix_group": 512},
        HALVES,
    ),
}  # fmt: skip
"""Recipe and (mean, deviation) of each kind of training."""

VARIED = {
    "ConViT": {"epochs"},  # with the share of the images
    "ConViT B": {"epochs"},
    "ConViT +": {"epochs"},
    "CMHSA": {"epochs", "learning_rate", "warmup_epochs"},  # one phase or two, the search, and Fig. 2
}


def kind_of(suite, experiment):
    """Which of AUTHORS' trainings this is."""
    if suite.startswith("cmhsa"):
        if experiment.model.startswith("cmhsa"):
            return "CMHSA"
        return "CMHSA's DeiT" if experiment.recipe.mixup else "CMHSA's ViT"
    if suite.startswith("cordonnier"):
        if experiment.kind == "pruning":
            return "Cordonnier's pruned"
        return "Cordonnier's ResNet18" if experiment.model == "resnet18_cifar" else "Cordonnier's attention"
    if suite.startswith(("init_", "convmixer")):
        if experiment.dataset == "imagenet":
            return "structured init on ImageNet"
        return "structured init's ConvMixer" if experiment.model == "convmixer" else "structured init"
    if experiment.model.endswith("_plus"):
        return "ConViT +"
    return "ConViT B" if experiment.model.endswith("_b") else "ConViT"


def check(kind, experiment):
    expected, normalization = AUTHORS[kind]
    varied = VARIED.get(kind, set())
    found = experiment.recipe.model_dump(exclude={"name", *varied})
    assert found == {name: value for name, value in expected.items() if name not in varied}
    info = get_info(experiment.dataset)
    assert statistics(info, experiment.normalization) == (normalization or (info.mean, info.std))


@pytest.mark.parametrize("suite", list_suites())
def test_every_training_of_a_paper_is_its_authors_in_every_field(suite):
    trained = [e for e in get_suite(suite).profile("paper").experiments() if e.is_trained]
    assert trained
    for experiment in trained:
        check(kind_of(suite, experiment), experiment)


def test_the_authors_other_imagenet_command_is_theirs_in_every_field():
    check("structured init on ImageNet as the code", imagenet_vit("Imp.-3", IMAGENET_AS_THE_CODE))


@pytest.mark.parametrize("suite", list_suites())
def test_where_training_shows_whole_images_testing_does_too(suite):
    for profile in get_suite(suite).profiles:
        for experiment in get_suite(suite).profile(profile).experiments():
            resized = experiment.image_size != get_info(experiment.dataset).image_size
            if experiment.recipe.crop == "none" and resized:
                assert experiment.recipe.test_crop == 1.0, experiment.id


def test_no_field_is_left_to_chance():
    for recipe, _ in AUTHORS.values():
        assert set(recipe) | {"name", "epochs", "learning_rate"} == set(Recipe.model_fields)
