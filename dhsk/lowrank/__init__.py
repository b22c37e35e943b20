"""Low-rank approximations of kernel matrices: landmarks, and the features that they give."""
