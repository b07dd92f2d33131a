"""A command of ours in a site's container: on this machine by Apptainer or Docker, in a job by Apptainer or pyxis.

    Site -> the words before a command

The store, the images and the code have the same paths inside as outside.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from launchers.command.options import GridOptions
from launchers.command.site_file import Site
from suite.base.errors import SpecError
from suite.base.files import default_data_dir

INSIDE = "SUITE_CONTAINER"  # is set there, to the image


def runtime_of(site: Site, *, in_job: bool) -> str:
    """The program that starts the container; a SpecError for one that cannot here."""
    image = site.container or ""
    guess = "apptainer" if image.endswith(".sif") else "pyxis" if in_job else "docker"
    chosen = site.container_runtime or guess
    if chosen == ("docker" if in_job else "pyxis"):
        where, valid = ("a job", "apptainer or pyxis") if in_job else ("this machine", "apptainer or docker")
        raise SpecError(f"container_runtime {chosen} starts no container in {where}: expected {valid}")
    return chosen


def mounts_of(site: Site, folders: Sequence[Path | str | None], data_dir: Path | str | None) -> list[str]:
    """List as OUTSIDE:INSIDE what is mounted: these folders, the images that are there, and what the site names."""
    images = data_dir or (default_data_dir() if default_data_dir().is_dir() else None)
    own = dict.fromkeys(os.path.abspath(folder) for folder in (*folders, images) if folder is not None)  # noqa: PTH100
    return [*(f"{folder}:{folder}" for folder in own), *(m if ":" in m else f"{m}:{m}" for m in site.container_mounts)]


def in_image(site: Site, module: str, data_dir: Path | str | None, **variables: str) -> list[str]:
    """A module of ours as the image's Python starts it; ``env`` comes after all that the image itself sets."""
    variables |= {"IMAGESETS_DIR": os.path.abspath(data_dir or default_data_dir()), INSIDE: str(site.container)}  # noqa: PTH100
    return ["env", *(f"{k}={v}" for k, v in variables.items()), site.container_python, "-P", "-u", "-m", module]


def before(site: Site, program: str, mounts: Sequence[str], on_gpu: bool) -> list[str]:
    """The words before a command that this program runs in the image; Docker as this user, on this machine's network.

    Args:
        program: name of the runtime that is none of srun's.
        mounts: folders that it mounts, as ``mounts_of`` lists them.
        on_gpu: whether the run needs NVIDIA's GPUs, unless the site's own options name others.
    """
    if program == "docker":
        words = ["docker", "run", "--rm", "--init", "--ipc", "host", "--network", "host", "--workdir", str(Path.cwd())]
        words += ["--user", f"{os.getuid()}:{os.getgid()}", "--env", "HOME=/tmp"]
        mount, gpus = "--volume", ["--gpus", "all"]
    else:
        words, mount, gpus = [program, "exec"], "--bind", ["--nv"]
    if on_gpu and not {"--rocm", "--device"} & set(site.container_options):
        words += gpus
    return [*words, *(w for m in mounts for w in (mount, m)), *site.container_options, str(site.container)]


def go_inside(options: GridOptions, code: Path, on_gpu: bool) -> None:
    """Become this very command in the container, with this copy of the code; a SpecError without the program."""
    site, data_dir = options.site, options.data_dir
    program = runtime_of(site, in_job=False)
    if shutil.which(program) is None:
        raise SpecError(f"--container {site.container}: {program} not found on PATH; install it, or go without")
    files = [path.absolute().parent for path in (options.site_path, options.teacher_weights) if path is not None]
    mounts = mounts_of(site, [options.runs, *files, code, Path.cwd()], data_dir)
    inside = in_image(site, "launchers.commands", data_dir, PYTHONPATH=str(code))
    sys.stdout.flush()
    os.execvp(program, [*before(site, program, mounts, on_gpu), *inside, "grid", *sys.argv[1:]])
