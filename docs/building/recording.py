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
DIGESTS = "sha256sum */experiments/*/seed-0/weights.safetensors"
STEPS = "grep steps killed/experiments/*/seed-0/log.txt"


class Recording:
    """A console that shows each command with what it says, as far as that fits a reader's minute."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.console = folder, Console(record=True, width=118, force_terminal=True, highlight=False)

    def type(self, command: str) -> None:
        self.console.print(f"[bold green]$[/] [bold]{command}[/]", soft_wrap=True)

    def show(self, output: str, only: tuple[str, ...]) -> None:
        for line in output.splitlines():
            if line.startswith(only):
                self.console.print(line, markup=False)

    def run(self, command: str, only: tuple[str, ...] = ("running", "done", "restarted", "continued")) -> None:
        self.type(command)
        self.show(self.wait(self.start(command)), only)

    def start(self, command: str) -> subprocess.Popen[str]:
        """Carry a command out, a grid with its store in the recording's folder."""
        where = ROOT if "grid.py" in command else self.folder
        words = command.replace("--runs ", f"--runs {self.folder}/")
        return subprocess.Popen(
            f"exec {words}", shell=True, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        )

    @staticmethod
    def wait(process: subprocess.Popen[str]) -> str:
        return process.communicate()[0]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        recording = Recording(Path(folder))
        recording.run(f"{GRID} --runs alone")
        recording.type(f"{GRID} --runs killed &")
        killed = recording.start(f"{GRID} --runs killed")
        while not list(Path(folder).glob("killed/experiments/*/seed-0/checkpoint/step-*")):
            time.sleep(0.1)
        killed.kill()
        recording.show(recording.wait(killed), ("running", "done"))
        recording.type(f"kill -9 {killed.pid}")
        recording.run(f"{GRID} --runs killed")
        recording.run(STEPS, only=("",))
        recording.type(DIGESTS)
        for line in sorted(recording.wait(recording.start(DIGESTS)).splitlines()):
            recording.console.print(line[:16] + "…" + line[64:], markup=False)
        picture = recording.console.export_svg(title="killed, resumed, the same bits")
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)  # which would ask the network for a font
    (ROOT / "docs" / "static" / "resumed.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
