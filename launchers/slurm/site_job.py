"""A site -> what any job of ours there asks for, and how it starts our code, in the site's container where it has one.

The pinned code comes before all that the environment or the image holds, and never the folder that a job happens to
start in (-P).
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launchers.command.container import before, in_image, mounts_of, runtime_of
from launchers.command.site_file import Site
from suite.spec.resources import Resources

PYTHON = sys.executable
_RELAY = Path(__file__).with_name("relay.sh")
_ONE_PROCESS = ("--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--cpus-per-task=1", "--overlap", "--export=ALL")


class SiteJob:
    """Jobs of runs with these resources, whose store and pinned code are these folders."""

    def __init__(self, site: Site, store: Path, code: str, resources: Resources) -> None:
        self._site, self._code, self._resources = site, code, resources
        self._on_gpu = resources.device == "gpu"
        self._threads = {"OMP_NUM_THREADS": str(resources.threads_per_rank)}
        self._runtime, self._mounts = "", list[str]()
        if site.container is not None:
            weights = resources.teacher_weights
            self._runtime = runtime_of(site, in_job=True)
            self._mounts = mounts_of(site, [store, Path(weights).parent if weights else None], resources.data_dir)
        self.srun_options: list[str] = []
        if self._runtime == "pyxis":  # it starts the container for srun
            self.srun_options += [f"--container-image={site.container}", f"--container-mounts={','.join(self._mounts)}"]
            self.srun_options += site.container_options

    def parameters(self, ranks_per_node: int) -> dict[str, Any]:
        """List what sbatch and srun are asked for, by submitit's names."""
        site, threads = self._site, self._resources.threads_per_rank
        asks_gpus, one = "gpu" in (site.gres or ""), None if site.node_gpus else "1"
        gpus = {"gpus-per-node": site.gpus_per_node or one, "gpus": site.gpus} if self._on_gpu else {}
        return {
            **{key: getattr(site, key) for key in ("partition", "account", "qos", "constraint", "nodes")},
            "ntasks_per_node": ranks_per_node,
            "cpus_per_task": threads,
            "mem": f"{site.mem_gb}GB" if site.mem_gb else None,
            "gres": site.gres if self._on_gpu or not asks_gpus else None,
            "stderr_to_stdout": True,
            "additional_parameters": {**{key: value for key, value in gpus.items() if value}, **site.sbatch},
            "srun_args": [f"--cpus-per-task={threads}", *self.srun_options],
        }

    def setup(self) -> list[str]:
        """The site's lines before a job's processes, and where these import from and how many threads they have."""
        path = f"export PYTHONPATH={shlex.quote(self._code)}${{PYTHONPATH:+:$PYTHONPATH}}"
        if self._runtime:
            path = f"image={shlex.quote(str(self._site.container))}"  # for job_end.sh
        return [*self._site.setup, path, *(f"export {name}={value}" for name, value in self._threads.items())]

    def command(self, module: str, arguments: Sequence[str]) -> str:
        """Spell the start of a module of ours; where pyxis starts the container, srun has to be before it."""
        words = [PYTHON, "-P", "-u", "-m", module]
        if self._runtime:
            words = in_image(self._site, module, self._resources.data_dir, PYTHONPATH=self._code, **self._threads)
        if self._runtime not in ("", "pyxis"):
            words = [*before(self._site, self._runtime, self._mounts, self._on_gpu), *words]
        return shlex.join([*words, *arguments])

    def ending(self, command: str) -> list[str]:
        """The lines that call a command of ours after a job's processes, with their status.

        In a container it reaches SLURM's programs, which are outside, by ``relay.sh``; pyxis needs a step for it.
        """
        if self._runtime == "pyxis":
            command = f"{shlex.join(['srun', *_ONE_PROCESS, *self.srun_options])} {command}"
        call = f'{command} "$status"; status=$?'
        if not self._runtime:
            return [call]
        relay = 'export SUITE_SLURM_RELAY="$folder/$SLURM_JOB_ID.relay"'
        return [relay, *_RELAY.read_text(encoding="utf-8").splitlines(), call, 'rm -rf "$SUITE_SLURM_RELAY"']
