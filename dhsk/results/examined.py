"""What a report shows of single samples and features: errors, curves, a map, and weights."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WrongSample:
    """A sample that the best cell took for another class while it was held out."""

    sample: int
    """Row of the sample, from 0."""
    name: str
    """Its id; empty if samples have none."""
    true: str | float
    predicted: str | float
    margin: float | None
    """Decision for the predicted class less that for the true one; None if they were not kept."""


@dataclass(frozen=True)
class RocCurve:
    """Receiver operating characteristic of one class against the rest, from held-out decisions."""

    positive: str | float
    """The class."""
    area: float
    """Area under the curve."""
    false_positives: tuple[float, ...]
    """Rates, ascending from 0 to 1."""
    true_positives: tuple[float, ...]
    """Rates of the same thresholds."""


@dataclass(frozen=True)
class SampleMap:
    """Two leading kernel principal components of some samples, under the taken kernel."""

    samples: tuple[int, ...]
    """Rows of the samples, ascending."""
    x: tuple[float, ...]
    y: tuple[float, ...]
    true: tuple[int, ...]
    """Numbers of their classes; -1 for classes that were left out."""
    predicted: tuple[int, ...]
    """Numbers of the classes that they were taken for while held out; -1 if they never were."""
    shares: tuple[float, float]
    """Parts of the variance of these samples that the components hold."""


@dataclass(frozen=True)
class ClassWeights:
    """Features that speak most for a class, the largest weight first."""

    label: str | float
    features: tuple[str, ...]
    weights: tuple[float, ...]

    @property
    def words(self) -> str:
        """Them in a line."""
        pairs = zip(self.features, self.weights, strict=True)
        return ", ".join(f"{name} {weight:+.3g}" for name, weight in pairs) or "none"


@dataclass(frozen=True)
class Examined:
    """Single samples as the best cell saw them, each in the fold that held it out."""

    n_wrong: int
    """Samples that were taken for another class."""
    wrong: tuple[WrongSample, ...]
    """The surest of these mistakes first; not all of them if there are many."""
    curves: tuple[RocCurve, ...] = ()
    map: SampleMap | None = None
