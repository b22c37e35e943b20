"""Estimators and transformers with scikit-learn's contract."""

from dhsk.estimators.maps import HypersphericalMap, ProjectiveMap
from dhsk.estimators.svc import HeatSVC

__all__ = ["HeatSVC", "HypersphericalMap", "ProjectiveMap"]
