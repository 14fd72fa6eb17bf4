"""The files of docs/clusters.md parse, and their commands play shards that merge."""

import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from dubito.experiment.config import parse_config
from dubito.experiment.resolve import resolve
from dubito.game.find import find_bots
from tests.cli.kit import REPO, Shell
from tests.llm.kit import run_games
from tests.shards.kit import everything_in

CLUSTERS = REPO / "examples" / "clusters"
CONFIG: dict[str, Any] = {"games": 34, "bots": ["RandomBoi", "StefaBot"], "table_sizes": [3], "rules": {"max_turns": 9}}


@pytest.fixture
def work(shell: Shell) -> Path:
    """Set up a folder with a config and commands that only print their arguments."""
    Path("experiment.yaml").write_text(yaml.safe_dump(CONFIG))
    for file in (Path(".venv/bin/dubito"), Path("bin/dubito")):
        file.parent.mkdir(parents=True)
        file.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        file.chmod(0o755)
    return shell.folder


def run_script(words: list[str], **more: str) -> list[str]:
    environment: Mapping[str, str] = {**os.environ, **more, "PATH": f"bin:{os.environ['PATH']}"}
    done = subprocess.run(words, env=environment, text=True, capture_output=True, check=True)
    return done.stdout.splitlines()


def test_the_scripts_are_shell() -> None:
    for script in CLUSTERS.glob("*.sh"):
        run_script(["sh", "-n", f"{script}"])


def test_slurm_array_and_merge_reproduce_the_run(work: Path, shell: Shell, short_chunks: int) -> None:
    script = f"{CLUSTERS / 'slurm.sh'}"
    (array,) = [line for line in Path(script).read_text().splitlines() if line.startswith("#SBATCH --array=")]
    first, last = map(int, array.partition("=")[2].split("-"))
    for task in range(first, last + 1):
        result = shell(*run_script(["sh", script], SLURM_ARRAY_TASK_ID=f"{task}"))
        assert result.code == 0, result.err
    merged = shell(*run_script(["sh", f"{CLUSTERS / 'merge.sh'}"]), "--no-report")
    assert merged.code == 0, merged.err
    whole = run_games(resolve(parse_config(CONFIG, "test"), find_bots(REPO)).experiment, work / "whole")
    assert f"results digest: {whole.results_digest}" in merged.out.splitlines()


def test_an_indexed_job_of_kubernetes_plays_each_shard_once(work: Path, shell: Shell, short_chunks: int) -> None:
    job = yaml.safe_load((CLUSTERS / "kubernetes.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    count = job["spec"]["completions"]
    every = [
        run_script([*container["command"], *container["args"]], JOB_COMPLETION_INDEX=f"{index}")
        for index in range(count)
    ]
    assert [words[words.index("--shard") + 1] for words in every] == [f"{k}/{count}" for k in range(1, count + 1)]
    assert shell(*every[-1], "--workers", "1").code == 0
    assert [folder.name[-15:] for folder in Path("runs").iterdir()] == ["-shard-16-of-16"]


def test_the_script_for_mpi_takes_any_executor(work: Path, short_chunks: int) -> None:
    started: list[bool] = []
    with ThreadPoolExecutor(2, initializer=started.append, initargs=(True,)) as threads:
        mpi = module_of(CLUSTERS / "mpi.py")
        mpi.run(Path("experiment.yaml"), Path("threads"), threads, lambda: 2)
    assert started, "the cluster's workers must have been used"
    run_games(resolve(parse_config(CONFIG, "test"), find_bots(REPO)).experiment, work / "whole")
    assert everything_in(Path("threads")) == everything_in(work / "whole")


def module_of(file: Path) -> ModuleType:
    """Import a script as a module."""
    spec = spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
