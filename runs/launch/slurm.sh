#!/bin/sh
# Two nodes with eight GPUs each: a task is a rank. `sbatch runs/launch/slurm.sh RUN.toml`, or other arguments of train.
# A node or a rank that is lost costs what came since the last checkpoint (docs/launch.md).
#SBATCH --job-name=tokamak
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=tokamak-%j.out

srun --kill-on-bad-exit tokamak train "$@" && exit
# A rank was lost, and Slurm has not noticed a node that is down (then it does this itself): all begin again, at most
# five times.
[ "${SLURM_RESTART_COUNT:-0}" -lt 5 ] && scontrol requeue "$SLURM_JOB_ID"
exit 1
