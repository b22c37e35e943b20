"""Gram stores on disk: zarr groups, their chunks, descriptions and staged samples."""
