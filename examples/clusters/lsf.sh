#!/bin/bash
# IBM Spectrum LSF: three nodes, a grid on each, one store. In the checkout: bsub < examples/clusters/lsf.sh
# Three minutes before the time limit LSF sends SIGTERM: the grid writes checkpoints, ends with status 130, and is requeued.
#BSUB -J "grid[1-3]"
#BSUB -n 16
#BSUB -R "span[hosts=1]"
#BSUB -gpu "num=2"
#BSUB -W 24:00
#BSUB -wt 3
#BSUB -wa TERM
#BSUB -r
#BSUB -Q 130
#BSUB -o grid.%J.%I.out
cd "$LS_SUBCWD" || exit 2
source .venv/bin/activate
exec python launchers/grid.py --suite sample_efficiency --profile gpu --runs runs --data-dir data
