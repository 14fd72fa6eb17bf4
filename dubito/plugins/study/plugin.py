"""Register `dubito fork`, and the writer of `dubito export --dataset`."""

from collections.abc import Mapping

from dubito.hooks import Command, hookimpl


@hookimpl
def commands() -> Mapping[str, Command]:
    return {"fork": Command("Run", "dubito.plugins.study.command:fork")}


@hookimpl
def dataset_writers() -> Mapping[str, str]:
    return {"parquet": "dubito.plugins.study.dataset:write_dataset"}
