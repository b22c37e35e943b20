"""Predicted seconds and memory of a computation."""
