"""Linear classifiers on features that need not fit in memory: Newton's method, on arrays only."""
