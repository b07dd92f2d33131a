"""How runs get carried out: the command line, the plan, this machine's process pool, and SLURM.

Where to look, in the order in which a grid passes:

    grid             the main command; commands: it and the other scripts as subcommands of one
    command_line     text -> options, as frozen data, such as an address; request: the experiments that they choose
    challengers      models of one's own, and whether they could be trained; check: the same without a grid
    plan             the experiments of a grid beside where their runs stand
    show, report     a profile as it is resolved; suites, plan and failures
    cost             FLOPs before a run starts; count_models: of all suites' models, to be shipped
    until            seed after seed until the headline is known

This machine:

    local            the process pool; forks, fork_server: runs that start at once; gpu_sharing: several on one GPU
    display          the table while it works; console, names, progress: what it writes

SLURM, in the same order:

    on_slurm         submit, watch, end
    cluster          plan -> arrays of jobs; batch: their scripts; submission, snapshot: their record and code
    node             the function that each process of a job calls; starts: those that began no run; ending: the last,
                     or job_end.sh where the node's Python fails
    slurm            SLURM's word on our jobs; slurm_calls: its programs, in an environment of ours; reasons: in words
    status           where every run stands; troubles: nodes that stand in the way

Beside them, as processes of their own (helper):

    live/            pages of a grid at work
    tracking/        runs in TensorBoard, trackio or Weights & Biases
    offline/         the project on a machine without a network
"""
