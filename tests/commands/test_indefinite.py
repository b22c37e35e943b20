"""`dhsk info` and `dhsk cv` on stores of kernels that are not positive semi-definite."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dhsk

EXPANSION = dhsk.ParametrixKernel(0.1, order=1, dim=6)


def test_info_tells_of_it(run: Any, counts: Callable[[int, int], Any]) -> None:
    """In words and for programs, for what is known and for what depends on the samples."""
    kernels = [dhsk.CosineKernel(), EXPANSION, dhsk.ParametrixKernel(0.1)]
    dhsk.compute_gram(counts(40, 6), kernels, store="x.gram")
    words = " ".join(run("info", "x.gram")[1].split())
    assert f"{EXPANSION.label}: not positive semi-definite: SVMs take it with" in words
    assert f"{kernels[2].label}: not positive semi-definite for all samples" in words
    facts = json.loads(run("info", "--json", "x.gram")[1])
    assert facts["positive_semidefinite"] == [True, False, None]


def test_cv_refuses_it_unless_it_is_allowed(run: Any, cv: Any, counts: Any) -> None:
    """The message has the way out, and --indefinite allow takes it."""
    dhsk.compute_gram(counts(40, 6), EXPANSION, store="x.gram")
    Path("y.txt").write_text("\n".join(np.tile(["a", "b"], 20)))
    given = ["x.gram", "--labels", "y.txt", "--folds", 2, "--C", 1]
    code, _, said = cv(*given)
    assert code == 2
    assert "not positive semi-definite" in said
    code, _, said = cv(*given, "--indefinite", "allow")
    assert code == 0, said
