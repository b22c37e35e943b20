"""Objects of S3-like stores, under the interface of paths."""
