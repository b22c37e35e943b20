"""Solvers on kernel matrices, in memory or read in parts; arrays only."""
