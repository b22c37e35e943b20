"""Trained classifiers, their files, and their training."""
