"""Every model variant; ``suite.models.registry`` finds them by name."""

from suite.base.torchvision_ops import make_torchvision_importable

make_torchvision_importable()  # before timm is imported for the first time
