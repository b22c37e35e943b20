"""Estimators in scikit-learn's contract."""
