"""Estimators and transformers with scikit-learn's contract."""

from dhsk.estimators.density import HeatKernelDensity
from dhsk.estimators.gaussian_process import HeatGaussianProcessRegressor
from dhsk.estimators.kernel_pca import HeatKernelPCA
from dhsk.estimators.libsvm_one_class import OneClassSVM
from dhsk.estimators.libsvm_svc import SVC
from dhsk.estimators.libsvm_svr import SVR
from dhsk.estimators.maps import HypersphericalMap, ProjectiveMap, TfidfMap
from dhsk.estimators.neighbors import HeatKernelNeighbors
from dhsk.estimators.nystrom import NystromFeatures
from dhsk.estimators.nystrom_ridge import NystromRidge
from dhsk.estimators.nystrom_svc import NystromSVC
from dhsk.estimators.one_class import HeatOneClassSVM
from dhsk.estimators.ridge import HeatKernelRidge
from dhsk.estimators.spectral_clustering import HeatSpectralClustering
from dhsk.estimators.svc import HeatSVC

__all__ = [
    "SVC",
    "SVR",
    "HeatGaussianProcessRegressor",
    "HeatKernelDensity",
    "HeatKernelNeighbors",
    "HeatKernelPCA",
    "HeatKernelRidge",
    "HeatOneClassSVM",
    "HeatSVC",
    "HeatSpectralClustering",
    "HypersphericalMap",
    "NystromFeatures",
    "NystromRidge",
    "NystromSVC",
    "OneClassSVM",
    "ProjectiveMap",
    "TfidfMap",
]
