"""The source's command, `python experiments.py`: plays the experiment described in `experiment.yaml`."""

import sys
from pathlib import Path

from dubito.cli.main import main

if __name__ == "__main__":
    main(["run", str(Path(__file__).with_name("experiment.yaml")), *sys.argv[1:]])
