"""DeiT: the ViT of arXiv:2012.12877, without distillation token. The baseline of ConViT's Table 1."""

from functools import partial

from timm.layers import trunc_normal_
from timm.models.vision_transformer import VisionTransformer

from suite.models.layers import check_divides, check_positive, scale_linears


class DeiT(VisionTransformer):
    """timm's VisionTransformer with DeiT's sizes and initialization.

        x_0 = [class token; patches] + position;  x = x + MHSA(LN(x));  x = x + MLP(LN(x));  logits = W LN(x)_0

    Args:
        image_size, patch_size: pixels; the patch must divide the image.
        weight_std: deviation of linear weights at the start. DeiT's 0.02 suits widths of hundreds; the same signal
            passes a layer of width D at 0.02 sqrt(W / D), where W is the width of the paper's model.

    forward: images (B, 3, image_size, image_size) -> logits (B, num_classes).

    Differs: nothing; linear weights, position and class token start from a truncated normal of 0.02 as DeiT's do.
    """

    def __init__(
        self,
        *,
        num_classes: int,
        image_size: int,
        dim: int,
        num_heads: int,
        patch_size: int = 16,
        depth: int = 12,
        weight_std: float = 0.02,
        drop_path: float = 0.0,
    ) -> None:
        check_divides("patch_size", patch_size, "image_size", image_size)
        check_divides("num_heads", num_heads, "dim", dim)
        check_positive("weight_std", weight_std)
        super().__init__(
            img_size=image_size,
            patch_size=patch_size,
            num_classes=num_classes,
            embed_dim=dim,
            depth=depth,
            num_heads=num_heads,
            drop_path_rate=drop_path,
        )
        trunc_normal_(self.cls_token, std=0.02)  # timm: 1e-6
        scale_linears(self, weight_std / 0.02)  # which timm has drawn


# Table 1 of arXiv:2103.10697. The micro size is ours: minutes on a laptop, at 32 pixels.
MODELS = {
    "deit_ti": partial(DeiT, num_heads=3, dim=192),
    "deit_s": partial(DeiT, num_heads=6, dim=384),
    "deit_b": partial(DeiT, num_heads=12, dim=768),
    "deit_ti_plus": partial(DeiT, num_heads=4, dim=256),
    "deit_s_plus": partial(DeiT, num_heads=9, dim=576),
    "deit_b_plus": partial(DeiT, num_heads=16, dim=1024),
    "deit_micro": partial(DeiT, num_heads=9, dim=54, depth=3, patch_size=8),
}
WITHOUT_EFFECT_ON_FLOPS = ("drop_path",)
PAPER_INPUT = (224, 1000)  # image side in pixels, classes
