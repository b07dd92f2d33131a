"""What all tests share."""

from suite.torchvision_ops import make_torchvision_importable

make_torchvision_importable()  # tests import timm directly, to compare with it
