"""Nyström approximations: landmarks, the features that they give, and their stores."""
