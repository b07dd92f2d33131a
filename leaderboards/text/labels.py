"""Names of columns, keys and metrics, as the CSV files have them -> words for people, with their units."""

import re

from leaderboards.boards.metrics import is_accuracy

_NAMES = {
    "full_data_top1": "Top-1 on all images", "ten_percent_data_top1": "Top-1 on 10 % of the images",
    "top1": "Top-1 accuracy", "top5": "Top-5 accuracy", "top1_percent": "Top-1 accuracy", "size": "Model size",
    "top5_percent": "Top-5 accuracy", "best_top1_percent": "Best top-1 accuracy", "top1_fraction": "Top-1 accuracy",
    "train_size_percent": "Images in training set, %", "params_m": "Parameters, millions", "ref": "Row",
    "flops_g": "FLOPs, billions", "flops_b": "FLOPs, billions", "speed_images_per_s": "Speed, images/s",
    "inference_images_per_s": "Inference, images/s", "images_per_s": "Speed, images/s", "mean_gate": "Mean gate",
    "mean_nonlocality": "Mean nonlocality, patches", "no_mask": "Nothing masked", "locality_strength": "Locality",
    "test_loss": "Test loss, nats", "embed_dim": "Width", "ffn_dim": "FFN width", "num_gpsa_layers": "GPSA layers",
    "relative_training_time": "Training time, relative", "num_parameters_millions": "Parameters, millions",
    "linear_gflops": "FLOPs, billions", "linear_gmacs": "MACs, billions", "pos_embed": "position embedding",
}  # fmt: skip
_WORDS = {
    "top1": "top-1", "top5": "top-5", "deit": "DeiT", "convit": "ConViT", "gpsa": "GPSA", "vit": "ViT", "psa": "PSA",
    "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "svhn": "SVHN", "imagenet": "ImageNet", "conv": "convolutional",
    "init": "start", "pos": "position", "embed": "embedding", "percent": "%", "plus": "plus",
}  # fmt: skip


def label(name: str, metric: str = "") -> str:
    """``deit_top1`` -> ``DeiT top-1, %``. ``metric`` is the one that a column shows, "" where it has none."""
    text = _NAMES.get(name) or _spell(name)
    is_percent = is_accuracy(metric) and not metric.endswith("_fraction")
    return f"{text}, %" if is_percent and not text.endswith("%") else text


def _spell(name: str) -> str:
    """The words of a name, with heads and pixels after their numbers, and a unit after a comma."""
    words = [_WORDS.get(word, word) for word in name.removeprefix("num_").split("_")]
    words = [re.sub(r"^h(\d+)$", r"\1 heads", re.sub(r"^imp(\d)$", r"Imp.-\1", word)) for word in words]
    text = " ".join(words)
    text = re.sub(r" (%|points)$", r", \1", text)
    return text[:1].upper() + text[1:] if words[0].islower() else text
