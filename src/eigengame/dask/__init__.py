"""A fit on a Dask cluster: partitions, what a worker computes, and how results merge."""
