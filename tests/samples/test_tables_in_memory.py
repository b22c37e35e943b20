"""DataFrames and AnnData objects as samples: names, ids, columns that are not features."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import dhsk
from dhsk.errors import InputError


@pytest.fixture
def frame(rng: np.random.Generator) -> pd.DataFrame:
    """Two columns of counts between names and labels."""
    return pd.DataFrame(
        {
            "who": list("abcdefgh"),
            "x": rng.poisson(3.0, 8),
            "kind": list("mmmmnnnn"),
            "y": rng.poisson(3.0, 8) + 1,
        }
    )


def names_of(samples: Any) -> list[str] | None:
    """All ids, in parts of three."""
    ids = samples.ids(3)
    return None if ids is None else [name for part in ids for name in part]


def test_columns_of_a_frame_may_be_no_features(frame: pd.DataFrame) -> None:
    """They are left out as those of a file are."""
    samples = dhsk.open_samples(frame, drop_columns=["kind"], id_column="who")
    (block,) = samples.blocks(100)
    np.testing.assert_array_equal(block, frame[["x", "y"]].to_numpy(float))
    assert samples.feature_names == ("x", "y")
    assert names_of(samples) == list("abcdefgh")
    with pytest.raises(InputError, match=r"X has no column 'z': its columns are who, x, kind, y"):
        dhsk.open_samples(frame, drop_columns=["z"])
    with pytest.raises(InputError, match=r"X has no column 'z': its columns are none"):
        dhsk.open_samples(np.eye(3), drop_columns=["z"])


def test_an_index_of_text_names_the_samples(frame: pd.DataFrame) -> None:
    """One of numbers does not."""
    own = frame.set_index("who")[["x", "y"]]
    assert names_of(dhsk.open_samples(own)) == list("abcdefgh")
    assert names_of(dhsk.open_samples(own.reset_index(drop=True))) is None
    assert names_of(dhsk.open_samples(np.eye(3))) is None


def test_a_sparse_frame_stays_sparse(rng: np.random.Generator) -> None:
    """Its zeros take no memory."""
    X = csr_array(rng.poisson(0.3, (30, 12)).astype(float))
    own = pd.DataFrame.sparse.from_spmatrix(X, columns=list("abcdefghijkl"))
    samples = dhsk.open_samples(own)
    assert (samples.is_sparse, samples.nnz) == (True, X.nnz)
    (block,) = samples.blocks(100)
    assert (block != X).nnz == 0
    assert samples.feature_names == tuple("abcdefghijkl")


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_an_anndata_object_has_names_on_both_sides(make: Any, rng: np.random.Generator) -> None:
    """Cells are the ids, genes the features; it is known by its attributes alone."""
    X = rng.poisson(2.0, (5, 3)).astype(float)
    adata = SimpleNamespace(
        X=make(X), obs_names=pd.Index(list("vwxyz")), var_names=pd.Index(["g1", "g2", "g3"])
    )
    samples = dhsk.open_samples(adata)
    assert samples.feature_names == ("g1", "g2", "g3")
    assert names_of(samples) == list("vwxyz")
    assert samples.shape == X.shape


def test_a_frame_gives_samples_and_labels(frame: pd.DataFrame) -> None:
    """From one table to a cross-validation."""
    found = dhsk.cross_validate(
        dhsk.open_samples(frame, drop_columns=["who", "kind"]),
        frame["kind"],
        kernels=[dhsk.CosineKernel()],
        C=[1.0],
        cv=2,
    )
    assert [row["fold"] for row in found.results_] == [0, 1]
