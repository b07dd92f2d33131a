"""How a model is trained and evaluated."""

from suite.base.torchvision_ops import make_torchvision_importable

make_torchvision_importable()  # before timm is imported for the first time
