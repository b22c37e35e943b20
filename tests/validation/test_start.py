"""Time scales with which a search starts: where pairs of samples have given mean values."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.samples import open_samples
from dhsk.validation.start import SPREADS, first_scales, least_scale, scales_at


@pytest.mark.parametrize("dim", [2, 64, 20_000])
@pytest.mark.parametrize("middle", [0.1, 0.9])
def test_the_spread_of_the_kernel_is_the_one_wanted(dim: int, middle: float) -> None:
    """As the exact kernel has it, on quantiles of the cosines and times of two digits."""
    cosines = np.random.default_rng(0).normal(middle, 0.02, 4000)
    scales = scales_at(cosines, dim, SPREADS)
    assert scales == sorted(scales)
    for scale, spread in ((scales[0], 0.9), (scales[-1], 0.1)):
        low, high = (
            1 - dhsk.HeatKernel.at_scale(dim, factor * scale).of_cosine(cosines).mean()
            for factor in (1.06, 0.94)
        )
        assert low < spread < high


@pytest.mark.parametrize(
    "dim", [2, 13, 51, 10_000, pytest.param(1_000_000, marks=pytest.mark.slow)]
)
def test_no_search_starts_below_what_is_proven(dim: int) -> None:
    """Samples so close that the smallest time cannot tell them apart start there."""
    (scale,) = scales_at(np.full(10, 1 - 1e-13), dim, SPREADS)
    assert scale == pytest.approx(least_scale(dim), rel=0.05)  # two digits
    dhsk.HeatKernel.at_scale(dim, least_scale(dim)).prepare()


def test_a_store_of_cosines_starts_where_its_samples_do(counts: Any) -> None:
    """Dense, sparse, stored: one answer; rows of zeros count as the centre."""
    X = counts(60, 30)
    X[3] = 0
    expected = first_scales(open_samples(X), None, "center")
    assert first_scales(open_samples(csr_array(X)), None, "center") == expected
    with pytest.warns(dhsk.ZeroRowsWarning):
        G = dhsk.compute_gram(X, "cosine")
    assert first_scales(G, None, "center") == expected
    assert first_scales(open_samples(X), "projective", "center") != expected


def test_samples_without_an_image_are_named() -> None:
    """Before anything is computed."""
    with pytest.raises(dhsk.InputError, match=r"row 1, column 0 .* projective"):
        first_scales(open_samples([[1.0, 2.0], [-1.0, 3.0]]), None, "center")


def test_one_pair_and_one_sample() -> None:
    """There is always a time to start at."""
    assert len(first_scales(open_samples([[1.0, 2.0], [2.0, 1.0]]), None, "center")) == 4
    assert first_scales(open_samples([[1.0, 2.0]]), None, "center") == [1.0]
