"""Threads of one process: calls end, give the same bits, and leave the process as it was."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk

pytestmark = pytest.mark.threads


@pytest.mark.timeout(60)
def test_derived_kernels_on_threads_do_not_wait_for_each_other(rng: Any) -> None:
    """Threads that read tiles of several Gaussian kernels of CSR samples all end, on 3.11 too."""
    X = csr_array(rng.poisson(1.0, (400, 375)).astype(np.float64))
    y = np.arange(400) % 4
    kernels = [dhsk.GaussianKernel(sigma) for sigma in (2, 4, 8, 16, 32, 64, 128, 256)]
    result = dhsk.cross_validate(X, y, kernels=kernels, C=np.logspace(-1, 4, 6), cv=5)
    assert len(result.results_) == 8 * 6 * 5
