"""Base of the estimators that fit on a Gram matrix that may be larger than memory."""

from sklearn.utils.validation import check_is_fitted

from dhsk.arrays import Rows
from dhsk.estimators.base import HeatEstimator
from dhsk.gram.compute import compute_gram
from dhsk.gram.matrix import GramMatrix
from dhsk.kernels import Kernel
from dhsk.kernels.centre import with_all_entries
from dhsk.objects.places import Place
from dhsk.samples import Samples, ZeroRows
from dhsk.samples.weighted import fixed_map


class GramEstimator(HeatEstimator):
    """Estimator whose fit makes passes over the kernel matrix of its samples."""

    store: str | Place | None
    journal: str | Place | None

    def _gram(self, samples: Samples, kernel: Kernel) -> GramMatrix:
        """The kernel matrix, computed on demand, or in the store."""
        return compute_gram(
            samples,
            kernel,
            sphere_map=fixed_map(self.sphere_map),
            zero_rows=ZeroRows(self.zero_rows),  # the warning was given when the rows were mapped
            store=self.store,
            dtype=self._fitted_map.dtype,
            product_dtype=self._fitted_map.dtype,
            memory=self.memory,
            client=self.client,
        )


class KeepsRows(HeatEstimator):
    """Estimator that keeps the samples of its fit, as others meet them in predictions."""

    _rows: Rows
    """Samples of the fit, mapped; a CSR row may stand for the centre."""

    @property
    def X_fit_(self) -> Rows:  # scikit-learn's name
        """Samples of the fit, mapped to the sphere, (N, dim)."""
        check_is_fitted(self)
        return with_all_entries(self._rows)
