"""Linear classifiers on features beyond memory, by Newton's method; arrays only."""
