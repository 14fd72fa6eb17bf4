"""Register the `dask` executor."""

from collections.abc import Mapping

from dubito.hooks import hookimpl


@hookimpl
def executors() -> Mapping[str, str]:
    return {"dask": "dubito.plugins.dask.cluster:open_pool"}
