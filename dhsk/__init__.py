"""Distributed hyperspherical kernels: exact heat kernel Gram matrices at scale, and SVMs on them.

Names are loaded when first used, so that importing the package costs nothing.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

# Not tested, as some libraries have no wheels there; numba calls its own support experimental. The
# documented mark: `sysconfig` would read the build's Makefile for it.
if "free-threading build" in sys.version:
    raise ImportError(
        f"dhsk does not work with this Python, a free-threaded build ({sys.version.split()[0]}t): "
        "install the usual build of Python 3.11 or newer, and dhsk there"
    )

if TYPE_CHECKING:
    from dhsk.bars import show_progress
    from dhsk.devices import device
    from dhsk.errors import (
        AccuracyError,
        BudgetError,
        ClusterError,
        ClusterWarning,
        CorruptTileError,
        DhskError,
        IncompleteStoreError,
        InputError,
        InputWarning,
        SamplesChangedError,
        StoreError,
        StoreMismatchError,
        ZeroRowsWarning,
    )
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
    from dhsk.execution.cluster import connect
    from dhsk.gram import (
        GramMatrices,
        GramMatrix,
        GramView,
        MeanDiscrepancy,
        compute_gram,
        graph_gram,
        maximum_mean_discrepancy,
        negative_laplacian,
        open_gram,
        read_edges,
        repair_gram,
    )
    from dhsk.gram.embeddings import diffusion_map, empirical_map, mercer_map
    from dhsk.gram.in_parts import array_job
    from dhsk.kernels import (
        AveragedKernel,
        CosineKernel,
        GaussianKernel,
        HeatKernel,
        HeatTimeDerivative,
        HyperbolicHeatKernel,
        Kernel,
        LinearKernel,
        ParametrixKernel,
        PolynomialKernel,
        SmoothedKernel,
    )
    from dhsk.progress import Progress
    from dhsk.results.asked import Fitting, Output, Refit, StratifiedFolds
    from dhsk.results.low_rank import LowRank
    from dhsk.samples import (
        clr_map,
        hyperspherical_map,
        multinomial_map,
        open_samples,
        projective_map,
        read_labels,
        spectrum_counts,
    )
    from dhsk.samples.spectrum import Spectrum
    from dhsk.samples.vectorizer import Vectorizer
    from dhsk.validation.cross_validate import cross_validate
    from dhsk.validation.learning_curve import LearningCurve, learning_curve
    from dhsk.validation.representatives import representatives
    from dhsk.validation.result import CvResult

_HOME = {
    "bars": ["show_progress"],
    "devices": ["device"],
    "execution.cluster": ["connect"],
    "errors": [
        "AccuracyError", "BudgetError", "ClusterError", "ClusterWarning", "CorruptTileError",
        "DhskError", "IncompleteStoreError", "InputError", "InputWarning", "SamplesChangedError",
        "StoreError", "StoreMismatchError", "ZeroRowsWarning",
    ],
    "estimators.density": ["HeatKernelDensity"],
    "estimators.gaussian_process": ["HeatGaussianProcessRegressor"],
    "estimators.kernel_pca": ["HeatKernelPCA"],
    "estimators.libsvm_one_class": ["OneClassSVM"],
    "estimators.libsvm_svc": ["SVC"],
    "estimators.libsvm_svr": ["SVR"],
    "estimators.maps": ["HypersphericalMap", "ProjectiveMap", "TfidfMap"],
    "estimators.neighbors": ["HeatKernelNeighbors"],
    "estimators.nystrom": ["NystromFeatures"],
    "estimators.nystrom_ridge": ["NystromRidge"],
    "estimators.nystrom_svc": ["NystromSVC"],
    "estimators.one_class": ["HeatOneClassSVM"],
    "estimators.ridge": ["HeatKernelRidge"],
    "estimators.spectral_clustering": ["HeatSpectralClustering"],
    "estimators.svc": ["HeatSVC"],
    "gram": [
    "GramMatrices", "GramMatrix", "GramView", "MeanDiscrepancy", "compute_gram", "graph_gram",
    "maximum_mean_discrepancy", "negative_laplacian", "open_gram", "read_edges", "repair_gram",
    ],
    "gram.embeddings": ["diffusion_map", "empirical_map", "mercer_map"],
    "gram.in_parts": ["array_job"],
    "kernels": [
        "AveragedKernel", "CosineKernel", "GaussianKernel", "HeatKernel", "HeatTimeDerivative",
        "HyperbolicHeatKernel", "Kernel", "LinearKernel", "ParametrixKernel", "PolynomialKernel",
        "SmoothedKernel",
    ],
    "progress": ["Progress"],
    "results.asked": ["Fitting", "Output", "Refit", "StratifiedFolds"],
    "results.low_rank": ["LowRank"],
    "samples.spectrum": ["Spectrum"],
    "samples.vectorizer": ["Vectorizer"],
    "samples": [
        "clr_map", "hyperspherical_map", "multinomial_map", "open_samples", "projective_map",
        "read_labels", "spectrum_counts",
    ],
    "validation.cross_validate": ["cross_validate"],
    "validation.learning_curve": ["LearningCurve", "learning_curve"],
    "validation.representatives": ["representatives"],
    "validation.result": ["CvResult"],
}  # fmt: skip

__all__ = [
    "SVC", "SVR", "AccuracyError", "AveragedKernel", "BudgetError", "ClusterError",
    "ClusterWarning", "CorruptTileError", "CosineKernel", "CvResult", "DhskError", "Fitting",
    "GaussianKernel", "GramMatrices", "GramMatrix", "GramView", "HeatGaussianProcessRegressor",
    "HeatKernel", "HeatKernelDensity", "HeatKernelNeighbors",
    "HeatKernelPCA", "HeatKernelRidge", "HeatOneClassSVM", "HeatSVC", "HeatSpectralClustering",
    "HeatTimeDerivative", "HyperbolicHeatKernel", "HypersphericalMap", "IncompleteStoreError",
    "InputError", "InputWarning", "Kernel", "LearningCurve", "LinearKernel", "LowRank",
    "MeanDiscrepancy", "NystromFeatures", "NystromRidge", "NystromSVC", "OneClassSVM", "Output",
    "ParametrixKernel", "PolynomialKernel", "Progress", "ProjectiveMap", "Refit",
    "SamplesChangedError", "SmoothedKernel", "Spectrum", "StoreError", "StoreMismatchError",
    "StratifiedFolds", "TfidfMap", "Vectorizer", "ZeroRowsWarning", "array_job", "clr_map",
    "compute_gram", "connect", "cross_validate", "device", "diffusion_map", "empirical_map",
    "graph_gram", "hyperspherical_map", "learning_curve", "maximum_mean_discrepancy",
    "mercer_map", "multinomial_map", "negative_laplacian", "open_gram", "open_samples",
    "projective_map", "read_edges", "read_labels", "repair_gram", "representatives",
    "show_progress", "spectrum_counts",
]  # fmt: skip


_MEANT = {
    "GaussianProcessClassifier": "scikit-learn's CalibratedClassifierCV(dhsk.SVC())",
    "GaussianProcessRegressor": "HeatGaussianProcessRegressor",
    "GridSearchCV": "cross_validate",
    "HeatSVR": "SVR(kernel='heat')",
    "KernelPCA": "HeatKernelPCA",
    "KernelRidge": "HeatKernelRidge",
    "LinearSVC": "SVC(kernel='linear')",
    "LinearSVR": "SVR(kernel='linear')",
    "NuSVC": "SVC",
    "NuSVR": "SVR",
    "Nystroem": "NystromFeatures",
    "NystromSVR": "NystromRidge",
    "RandomizedSearchCV": "scikit-learn's, which takes estimators of dhsk",
    "cross_val_predict": "cross_validate(...).out_of_fold(), or scikit-learn's",
    "cross_val_score": "cross_validate",
}
"""What names of scikit-learn, and some like those here, are called."""


def __getattr__(name: str) -> Any:
    """Load a public name from its home, or the version, at first use."""
    if name == "__version__":
        from importlib.metadata import version

        return version("dhsk")
    for home, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"dhsk.{home}"), name)
    said = f"module 'dhsk' has no attribute {name!r}"
    raise AttributeError(said if name.startswith("_") else said + _did_you_mean(name))


def _did_you_mean(name: str) -> str:
    from difflib import get_close_matches

    meant = _MEANT.get(name) or next(iter(get_close_matches(name, __all__, 1, 0.8)), "")
    return f": did you mean {meant}?" if meant else ""


def __dir__() -> list[str]:
    return sorted(__all__)
