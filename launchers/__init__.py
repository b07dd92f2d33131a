"""How runs get carried out: the command line, the plan, this machine's process pool, and SLURM.

grid             the main command; commands: it and the other scripts as subcommands of one
command/         text -> options -> the request; the plan and a profile as they are shown; check, until_decided
core/            the plan, and what a run needs wherever it is trained: its name, its fork, sidecar processes
local/           this machine: the process pool, GPU sharing, the table while it works
slurm/           a cluster: submit, the job that runs there, requeue, queries, grid_status
live/            pages of a grid at work, as a process beside it
tracking/        runs in TensorBoard, trackio or Weights & Biases, as a process beside
count_models     FLOPs of all suites' models, to be shipped
"""
