"""Solvers of dual problems, on matrices that are read in parts; arrays only."""
