#!/bin/sh
# An array of 16 shards: `sbatch examples/clusters/slurm.sh`, in a folder that all nodes share. The same command resumes
# stopped shards and skips finished ones. Then run `sh examples/clusters/merge.sh`.
#SBATCH --job-name=dubito
#SBATCH --array=1-16
#SBATCH --cpus-per-task=2
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --output=slurm-%A-%a.log
set -e
shards=16  # as in --array; SLURM_ARRAY_TASK_COUNT is smaller if you resubmit only some shards
exec .venv/bin/dubito run experiment.yaml --shard "$SLURM_ARRAY_TASK_ID/$shards" --no-report --quiet
