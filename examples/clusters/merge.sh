#!/bin/sh
# Merge the shards of experiment.yaml: run this script, or `sbatch --dependency=afterok:JOB examples/clusters/merge.sh`.
set -e
exec .venv/bin/dubito merge runs/experiment-*-shard-*-of-16
