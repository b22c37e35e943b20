"""Where work runs: threads, Dask, processes; limits, locks, temporary folders."""
