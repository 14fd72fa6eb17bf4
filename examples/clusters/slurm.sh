#!/bin/sh
# An array of 16 shards: `sbatch examples/clusters/slurm.sh`, in a folder that all nodes share. The same command goes on
# with shards that were stopped, and leaves finished ones alone. Then `sh examples/clusters/merge.sh`.
#SBATCH --job-name=dubito
#SBATCH --array=1-16
#SBATCH --cpus-per-task=2
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --output=slurm-%A-%a.log
set -e
shards=16  # as in --array; not SLURM_ARRAY_TASK_COUNT, which is another where only some are submitted again
exec .venv/bin/dubito run experiment.yaml --shard "$SLURM_ARRAY_TASK_ID/$shards" --no-report --quiet
