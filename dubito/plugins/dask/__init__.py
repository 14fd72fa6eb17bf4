"""A Dask cluster as the executor for runs of hand-written bots."""
