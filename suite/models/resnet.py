"""ResNet18 for small images: the convolutional baseline of arXiv:1911.03584, Section 4."""

from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from suite.models.layers import ImageSize


class BasicBlock(nn.Module):
    """relu(BN(conv(relu(BN(conv(x))))) + shortcut(x)): two 3x3 convolutions (arXiv:1512.03385, Eq. 2).

    The shortcut is a 1x1 convolution and BN where the shape changes, else the identity.
    """

    def __init__(self, width_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = nn.Sequential()
        if stride != 1 or width_in != width:
            self.downsample.extend([nn.Conv2d(width_in, width, 1, stride, bias=False), nn.BatchNorm2d(width)])

    def forward(self, x_BCHW: Tensor) -> Tensor:
        inner = F.relu(self.bn1(self.conv1(x_BCHW)))
        return F.relu(self.bn2(self.conv2(inner)) + self.downsample(x_BCHW))


class ResNet18(nn.Module):
    """arXiv:1512.03385, Table 1, with a 3x3 stem of stride 1 and no pooling after it, for 32-pixel images.

    forward: images (B, 3, H, W) of any size -> logits (B, num_classes).

    Differs: the paper's CIFAR networks are other, thinner ones; this is the authors' of arXiv:1911.03584, who take
    ImageNet's four stages of 64 to 512 channels. PyTorch's default initialization, like there. The module tree is
    torchvision's.
    """

    def __init__(self, *, num_classes: int, image_size: ImageSize, width: int = 64) -> None:
        super().__init__()
        del image_size  # global pooling: any size
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(BasicBlock(width, width, 1), BasicBlock(width, width, 1))
        self.layer2 = nn.Sequential(BasicBlock(width, 2 * width, 2), BasicBlock(2 * width, 2 * width, 1))
        self.layer3 = nn.Sequential(BasicBlock(2 * width, 4 * width, 2), BasicBlock(4 * width, 4 * width, 1))
        self.layer4 = nn.Sequential(BasicBlock(4 * width, 8 * width, 2), BasicBlock(8 * width, 8 * width, 1))
        self.fc = nn.Linear(8 * width, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x_BCHW = F.relu(self.bn1(self.conv1(images)))
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x_BCHW = stage(x_BCHW)
        return self.fc(x_BCHW.mean((2, 3)))


MODELS = {"resnet18_cifar": partial(ResNet18)}
PAPER_INPUT = (32, 10)  # image side in pixels, classes
