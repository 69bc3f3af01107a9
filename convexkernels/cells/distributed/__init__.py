"""Cells of a table that is on a Dask cluster: its parts, what is known of them, learning, and functions that stay."""
