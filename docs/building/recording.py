"""Record a terminal in which a grid is killed with ``kill -9``, goes on, and ends with the bits of one left alone.

python docs/building/recording.py       # trains for some minutes, then writes docs/static/resumed.svg
"""

import re
import subprocess
import tempfile
import time
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).parents[2]
GRID = "python launchers/grid.py --suite sample_efficiency --only model=convit_micro train_size_percent=5"
SHOWN = ("running", "done", "restarted", "continued")  # beginnings of a grid's lines that fit a reader's minute


def main() -> None:
    console = Console(record=True, width=118, force_terminal=True, highlight=False)

    def echo(command: str) -> None:
        console.print(f"[bold green]$[/] [bold]{command}[/]", soft_wrap=True)

    def start(command: str) -> subprocess.Popen[str]:
        """Type a command and carry it out, a grid with its store in the recording's folder."""
        echo(command)
        where = ROOT if "grid.py" in command else folder
        words = command.removesuffix(" &").replace("--runs ", f"--runs {folder}/")
        return subprocess.Popen(
            f"exec {words}", shell=True, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        )

    def show(process: subprocess.Popen[str], only: tuple[str, ...] = SHOWN) -> None:
        for line in process.communicate()[0].splitlines():
            if line.startswith(only):
                console.print(line, markup=False)

    with tempfile.TemporaryDirectory() as folder:
        show(start(f"{GRID} --runs alone"))
        killed = start(f"{GRID} --runs killed &")
        while not list(Path(folder).glob("killed/experiments/*/seed-0/checkpoint/step-*")):
            time.sleep(0.1)
        killed.kill()
        show(killed)
        echo(f"kill -9 {killed.pid}")
        show(start(f"{GRID} --runs killed"))
        show(start("grep steps killed/experiments/*/seed-0/log.txt"), only=("",))
        digests = start("sha256sum */experiments/*/seed-0/weights.safetensors").communicate()[0]
        for line in sorted(digests.splitlines()):
            console.print(line[:16] + "…" + line[64:], markup=False)
    picture = console.export_svg(title="killed, resumed, the same bits")
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)  # which would ask the network for a font
    (ROOT / "docs" / "static" / "resumed.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
