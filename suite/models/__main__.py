"""``python -m suite.models``: every model with its size and cost at its paper's input."""

import argparse
import sys
from collections.abc import Sequence

import torch
from rich import box
from rich.console import Console
from rich.table import Column, Table

from suite.base.arguments import program
from suite.base.exit_codes import Exit
from suite.models.flops import count_flops
from suite.models.registry import build_model, count_parameters, list_models, reference_input


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit status 0."""
    prog = program("models", "python -m suite.models")
    argparse.ArgumentParser(prog=prog, description="List every model with its size and cost.").parse_args(arguments)
    titles = ("pixels", "classes", "parameters", "GMAC", "GMAC, linear only")
    table = Table("model", *(Column(title, justify="right") for title in titles), box=box.SIMPLE_HEAD)
    for name in list_models():
        side, classes = reference_input(name)
        with torch.device("meta"):
            parameters = count_parameters(build_model(name, num_classes=classes, image_size=side))
        flops = count_flops(name, num_classes=classes, image_size=side)
        costs = (f"{flops.total / 2e9:.3f}", f"{flops.linear / 2e9:.3f}")
        table.add_row(name, str(side), str(classes), f"{parameters:,}", *costs)
    Console().print(table)
    return Exit.DONE


if __name__ == "__main__":
    sys.exit(main())
