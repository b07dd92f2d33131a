"""A model of one's own: a small transformer over patches.

convolutional-prior grid --check mine=my_vit.py:MyViT dim=192
convolutional-prior grid --suite sample_efficiency --challenger mine=my_vit.py:MyViT dim=192
"""

import torch
from torch import Tensor, nn


class MyViT(nn.Module):
    """Images (B, 3, S, S) -> logits (B, num_classes)."""

    def __init__(
        self, *, num_classes: int, image_size: int, dim: int = 96, depth: int = 3, patch_size: int = 4
    ) -> None:
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patches = nn.Conv2d(3, dim, patch_size, stride=patch_size)
        self.position = nn.Parameter(0.02 * torch.randn(num_patches, dim))
        block = nn.TransformerEncoderLayer(dim, dim // 32, 4 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).mT + self.position
        return self.head(self.blocks(tokens).mean(1))
