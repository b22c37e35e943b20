"""Estimators and transformers with scikit-learn's contract, each loaded by itself."""
