"""A Dask cluster as executor of runs of hand-written bots."""
