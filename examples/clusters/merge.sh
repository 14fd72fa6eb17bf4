#!/bin/sh
# The shards of experiment.yaml made one run: by hand, or `sbatch --dependency=afterok:JOB examples/clusters/merge.sh`.
set -e
exec .venv/bin/dubito merge runs/experiment-*-shard-*-of-16
