"""Names of columns, keys and metrics, as the CSV files have them -> words for people, with their units."""

import re
from collections.abc import Iterable

from leaderboards.boards.board import Board
from leaderboards.boards.metrics import is_accuracy

_NAMES = {
    "full_data_top1": "Top-1 on all images, %", "ten_percent_data_top1": "Top-1 on 10 % of the images, %",
    "top1": "Top-1 accuracy", "top5": "Top-5 accuracy", "top1_percent": "Top-1 accuracy", "size": "Model size",
    "top5_percent": "Top-5 accuracy", "best_top1_percent": "Best top-1 accuracy", "top1_fraction": "Accuracy, 0 to 1",
    "train_size_percent": "Images in training set, %", "params_m": "Parameters, millions", "ref": "Row",
    "flops_g": "FLOPs, billions", "flops_b": "FLOPs, billions", "speed_images_per_s": "Speed, images/s",
    "inference_images_per_s": "Inference, images/s", "images_per_s": "Speed, images/s", "accuracy": "Accuracy, 0 to 1",
    "mean_nonlocality": "Mean nonlocality, patches", "no_mask": "Nothing masked", "warmup": "Warm-up",
    "test_loss": "Test loss, nats", "embed_dim": "Width", "ffn_dim": "FFN width", "mask_content": "Content masked",
    "mask_position": "Position masked", "mask_pos_embed": "Position embedding masked",
    "relative_training_time": "Training time, relative", "num_parameters_millions": "Parameters, millions",
    "linear_gflops": "FLOPs, billions", "linear_gmacs": "MACs, billions", "train_gating": "Gates trained",
    "train_gpsa": "GPSA trained", "use_gpsa": "GPSA used", "gain_percent": "Relative gain, %",
    "top1_gap_percent": "Relative top-1 gain, %", "top5_gap_percent": "Relative top-5 gain, %",
}  # fmt: skip
_WORDS = {
    "top1": "top-1", "top5": "top-5", "deit": "DeiT", "convit": "ConViT", "gpsa": "GPSA", "vit": "ViT",
    "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "svhn": "SVHN", "imagenet": "ImageNet", "conv": "convolutional",
    "init": "start", "change": "change, points", "points": ", points",
}  # fmt: skip
_PATTERNS = (
    (r"(ViT|DeiT) ([stb])\b", lambda found: f"{found[1]}-{found[2].upper()}"),
    (r" plus\b", "+"),
    (r"\bh(\d+)\b", r", \1 heads"),
    (r"\bimp(\d)\b", r"Imp.-\1"),
    (r"^ ?, | (?=,)", ""),
)


def label_names(board: Board) -> dict[str, str]:
    """A board's keys and columns in words, but for those of custom models, who have their users' names."""
    metrics = {column: cell.metric for (_, column), cell in board.cells.items()}
    own = board.table.custom_columns
    return {name: name if name in own else label(name, metrics.get(name, "")) for name in board.paper.header}


def list_columns(board: Board, columns: Iterable[str]) -> str:
    """The names of columns as a sentence lists them."""
    labels = label_names(board)
    return "; ".join(labels[column].removesuffix(", %") for column in columns)


def label(name: str, metric: str = "") -> str:
    """``deit_top1`` -> ``DeiT top-1, %``. ``metric`` is the one that a column shows, "" where it has none."""
    text = _NAMES.get(name) or _spell(name)
    is_percent = is_accuracy(metric) and not metric.endswith("_fraction")
    return f"{text}, %" if is_percent and not text.endswith(("%", "points")) else text


def _spell(name: str) -> str:
    """The words of a name, with heads after their numbers, and a unit after a comma."""
    words = [_WORDS.get(word, word) for word in name.removeprefix("num_").split("_")]
    text = " ".join(words)
    for pattern, better in _PATTERNS:
        text = re.sub(pattern, better, text)
    return text[:1].upper() + text[1:] if words[0].islower() else text
