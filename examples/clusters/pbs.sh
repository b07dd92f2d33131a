#!/bin/bash
# PBS Pro and OpenPBS: three nodes, a grid on each, one store. In the checkout: qsub examples/clusters/pbs.sh
# The same command goes on where a time limit has ended it.
#PBS -N grid
#PBS -J 0-2
#PBS -r y
#PBS -l select=1:ncpus=16:ngpus=2:mem=64gb
#PBS -l walltime=24:00:00
#PBS -j oe
cd "$PBS_O_WORKDIR" || exit 2
source .venv/bin/activate
exec python launchers/grid.py --suite sample_efficiency --profile gpu --runs runs --data-dir data
