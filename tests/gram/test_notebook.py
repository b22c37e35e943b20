"""A matrix in a notebook: a small picture, cheap and right."""

import re
from base64 import b64decode
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

import dhsk
from dhsk.gram.notebook import shown_samples


def picture(html: str) -> Any:
    """Pixels of the picture, (n, n, 4)."""
    (encoded,) = re.findall('src="data:image/png;base64,([^"]+)"', html)
    return imread(BytesIO(b64decode(encoded)), format="png")


@pytest.mark.parametrize("store", [None, "G.gram"])
def test_the_picture_has_the_values(counts: Any, tmp_path: Path, store: str | None) -> None:
    """Bright where two samples are alike: the order of the pixels is that of the values."""
    X = counts(30, 9)
    where = None if store is None else tmp_path / store
    G = dhsk.compute_gram(X, dhsk.HeatKernel(dim=9, time=0.1), store=where)
    pixels = picture(G._repr_html_())[..., :3].sum(axis=2)
    values = np.asarray(G)
    apart = ~np.eye(30, dtype=bool)
    assert pixels.shape == (30, 30)
    # Viridis rises in all three colours together, but for rounding to 256 steps.
    dark, bright = values[apart].argmin(), values[apart].argmax()
    assert pixels[apart][dark] < pixels[apart][bright]
    assert np.corrcoef(pixels[apart], values[apart])[0, 1] > 0.9
    low, high = values[apart].min(), values[apart].max()
    assert f"all 30 samples, from {low:.3g} (dark) to {high:.3g} (bright)" in G._repr_html_()


def test_of_many_samples_few_are_read(monkeypatch: pytest.MonkeyPatch, counts: Any) -> None:
    """Runs of consecutive ones, from the first to the last."""
    chosen = shown_samples(1_000_000)
    assert len(chosen) == 64
    assert chosen[0] == 0
    assert chosen[-1] == 999_999
    assert np.count_nonzero(np.diff(chosen) > 1) == 7
    G = dhsk.compute_gram(counts(200, 5), "cosine")
    monkeypatch.setattr(dhsk.GramMatrix, "_tile", None)  # no tile is read or computed
    assert picture(G._repr_html_()).shape == (64, 64, 4)
    assert "64 of 200 samples" in G._repr_html_()


def test_rectangles_have_no_picture(counts: Any) -> None:
    """Only the table."""
    G = dhsk.compute_gram(counts(20, 5), "cosine", Y=counts(30, 5))
    assert "(20, 30)" in G._repr_html_()
    assert "<img" not in G._repr_html_()


def test_samples_that_are_gone_are_told(counts: Any, tmp_path: Path) -> None:
    """The table is shown all the same."""
    G = dhsk.compute_gram(counts(20, 5), "cosine", store=tmp_path / "G.gram")
    for file in sorted((tmp_path / "G.gram" / "rows").rglob("c/**/*")):
        if file.is_file():
            file.unlink()
    assert "(20, 20)" in G._repr_html_()
    assert "no picture: " in G._repr_html_()
