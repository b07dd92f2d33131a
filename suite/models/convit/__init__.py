"""ConViT: gated positional self-attention, its masking and its probes."""
