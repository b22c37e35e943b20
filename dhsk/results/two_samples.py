"""Results of a test of two sets of samples, as typed values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

LEVEL: Final = 0.05
"""p-value up to which two sets are said to differ."""


@dataclass(frozen=True)
class ComparedSet:
    """One of the two sets."""

    name: str
    """A or B."""
    source: str
    n_samples: int
    zero_rows: int
    """Number of all-zero samples."""
    fingerprint: str


@dataclass(frozen=True)
class ComparedKernel:
    """One of the kernels that were tried."""

    kernel: str
    """In words, with its time."""
    time_scale: float | None
    statistic: float
    """Unbiased estimate in units of its root mean square over the permutations."""


@dataclass(frozen=True)
class TwoSamples:
    """What the test found: content of results.json."""

    version: str
    created: str
    sets: tuple[ComparedSet, ComparedSet]
    dim: int
    sphere_map: str
    kernels: tuple[ComparedKernel, ...]
    best: int
    """Kernel of the largest statistic, whose estimates follow."""
    unbiased: float
    biased: float
    p_value: float
    permutations: int
    seconds: float
    samples: Mapping[str, str]
    """Fingerprint of both sets, by which the same run is known."""
    settings: Mapping[str, Any]
    """What decides the results, beside the samples."""

    @property
    def answer(self) -> str:
        """Whether the sets differ, with the p-value."""
        found = "The two sets differ" if self.p_value <= LEVEL else "No difference was found"
        return f"{found}: p = {self.p_value:.3g}"

    @property
    def meaning(self) -> str:
        """What the p-value says, in sentences."""
        total = self.permutations + 1
        reached = round(self.p_value * total)
        counted = (
            f"Of {total:,} divisions of all samples into sets of these sizes, the "
            f"given one and {self.permutations:,} at random, {reached:,} had a difference at least "
            "this large. "
        )
        if self.p_value <= LEVEL:
            return counted + (
                f"If A and B came from one distribution, that would happen in {reached:,} of "
                f"{total:,} cases. How large the difference is, the samples show."
            )
        return counted + (
            "So the difference is one that chance makes. This is no proof that the sets are alike: "
            "more samples show smaller differences"
            + (
                "."
                if self.sphere_map in ("identity", "scaled")
                else f", and the map ({self.sphere_map}) leaves out how large a sample is as a "
                "whole: a Gaussian kernel (--kernel gaussian) compares the values as they are."
            )
        )
