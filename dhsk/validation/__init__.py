"""Cross-validation over kernels, times, C and folds."""
