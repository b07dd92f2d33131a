"""The grid's display while it works: a live table on a terminal, one line per event elsewhere."""

from __future__ import annotations

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from launchers.core.console import Excerpt
from launchers.core.plan import read_progress
from launchers.core.run_names import describe
from launchers.core.time_left import clock, find_time_left, images_left
from launchers.local.pool import LocalPool, LocalRun, PoolState
from suite.store.heartbeat import find_stall

_STYLES: dict[PoolState, str] = {
    "failed": "bold red",
    "running": "bold cyan",
    "locked": "magenta",
    "done": "green",
    "waiting": "dim",
}
_WORDS: dict[PoolState, str] = {"locked": "in another grid"}
_IMPORTANCE = list(_STYLES)  # what matters most first
_MOVING = ("running", "locked")
_MAX_REASONS = 5  # of failed runs, below the table


class Display:
    """A context manager around the grid's loop; call ``update`` at each turn."""

    def __init__(self, pool: LocalPool, console: Console) -> None:
        self._pool, self._console = pool, console
        self._names = describe([run.job.experiment for run in pool.runs])
        self._seen = [(run.state, run.num_restarts) for run in pool.runs]
        self._metrics: dict[int, dict[str, float]] = {}
        self._stalled: dict[int, str] = {}
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self.update()
            self._live.stop()

    def update(self) -> None:
        for i, run in enumerate(self._pool.runs):
            now = (run.state, run.num_restarts)
            if run.state in _MOVING or i not in self._metrics or self._seen[i] != now:
                self._metrics[i] = read_progress(run.job.directory)
                self._stalled[i] = find_stall(run.job.directory) if run.state in _MOVING else ""
            if self._seen[i] != now and not self._live:
                self._console.print(self._event(run, self._seen[i][1] < run.num_restarts), soft_wrap=True)
            self._seen[i] = now
        if self._live:
            self._live.update(self._render(), refresh=True)

    def _name(self, run: LocalRun) -> str:
        return self._names[run.job.experiment.id]

    def _event(self, run: LocalRun, restarted: bool) -> str:
        """A line such as "done (3 of 10 done): deit_micro 5 % seed 0: top-1 31.2 %"."""
        detail = ""
        if run.state == "done" and (result := run.job.directory.read_result()) is not None:
            detail = f": top-1 {result.top1_percent:.2f} %"
        elif run.problem and run.state != "done":
            detail = f": {run.problem}"
        detail += f"; {run.remark}" if run.remark else ""
        done = sum(r.state == "done" for r in self._pool.runs)
        word = "restarted" if restarted and run.state == "running" else _WORDS.get(run.state, run.state)
        return f"{word} ({done} of {len(self._pool.runs)} done): {self._name(run)}{detail}"

    def _render(self) -> RenderableType:
        """The runs that matter most now, as many as the terminal has lines for, and the total."""
        order = sorted(range(len(self._pool.runs)), key=lambda i: _IMPORTANCE.index(self._pool.runs[i].state))
        shown = order[: max(3, self._console.size.height - 7)]
        names = (Column(title, no_wrap=True) for title in ("run", "state"))
        numbers = (Column(title, justify="right", no_wrap=True) for title in ("images/s", "ETA", "top-1 %"))
        columns = (*names, Column("progress", min_width=12), *numbers)
        table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
        for i in shown:
            table.add_row(*self._row(i, self._pool.runs[i]))
        lines: list[RenderableType] = [table, self._total()]
        if len(shown) < len(self._pool.runs):
            lines.insert(1, Text(f"… and {len(self._pool.runs) - len(shown)} more", style="dim"))
        reasons = [f"failed: {self._name(run)}: {run.problem}" for run in self._pool.runs if run.state == "failed"]
        lines += [Excerpt(reason, "red") for reason in reasons[:_MAX_REASONS]]
        remarks = [f"{self._name(run)}: {run.remark}" for run in self._pool.runs if run.remark]
        lines += [Excerpt(remark, "yellow") for remark in remarks[:_MAX_REASONS]]
        return Group(*lines)

    def _row(self, i: int, run: LocalRun) -> list[RenderableType]:
        metrics = self._metrics[i]
        step, num_steps = metrics.get("step", 0), metrics.get("num_steps", 1)
        stall = self._stalled.get(i)
        rate = metrics.get("images_per_s") if run.state in _MOVING and not stall else None
        state = "waiting for a run" if run.waits_for_parent else _WORDS.get(run.state, run.state)
        accuracy = metrics.get("top1_percent")
        return [
            self._name(run),
            Text(stall, "yellow") if stall else Text(state, _STYLES[run.state]),
            ProgressBar(total=num_steps, completed=step, width=20),
            "" if rate is None else f"{rate:,.0f}",
            "" if rate is None else clock(images_left(run.job, metrics) / max(rate, 1e-9)),
            "" if accuracy is None else f"{accuracy:.2f}",
        ]

    def _total(self) -> RenderableType:
        runs, share = self._pool.runs, 0.0
        states = [run.state for run in runs]
        for i, state in enumerate(states):
            step, num_steps = self._metrics[i].get("step", 0), self._metrics[i].get("num_steps", 1)
            share += 1.0 if state in ("done", "failed") else step / max(1.0, num_steps)
        paces = [(run.job, self._metrics[i], run.state in _MOVING) for i, run in enumerate(runs)]
        left = find_time_left(paces, sum(state in ("waiting", *_MOVING) for state in states))
        words = f"{states.count('done')} of {len(runs)} done"
        words += "".join(f", {states.count(state)} {state}" for state in ("running", "failed"))
        line = Table.grid(padding=(0, 1))
        to_go = "" if left is None else f", about {clock(left)} to go"
        line.add_row(ProgressBar(total=len(runs), completed=share, width=30), Text(words + to_go))
        return line
