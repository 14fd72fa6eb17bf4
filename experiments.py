"""Play the experiment in `experiment.yaml`: `python experiments.py`, the command of the original project."""

import sys
from pathlib import Path

from dubito.cli.main import main

if __name__ == "__main__":
    main(["run", str(Path(__file__).with_name("experiment.yaml")), *sys.argv[1:]])
