"""Held-out log-likelihoods of densities on the sphere: heat kernel, scikit-learn, mixtures.

Run as ``python tests/benchmarks/density.py --data DIR``. Images of digits and of MNIST, 20
principal components of each divided by their length, and posts as 20 components of latent semantic
analysis: 3,000 samples at most, half of them held out. All densities are by the area of the sphere.
`KernelDensity` has normal densities in the space around it, which lose what they have off the
sphere: they are divided by their mass on it at the same width, which is von Mises-Fisher's. A
mixture of von Mises-Fisher distributions has 1 to 100 components by expectation and maximisation.
Widths and numbers of components are the best of five folds of the training half.
"""

from typing import Any

import numpy as np
from defaults import data_sets
from records import parsed, parser_of, record
from scipy.special import ive, logsumexp
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import KFold
from sklearn.neighbors import KernelDensity

import dhsk

PEERS = ("KernelDensity on the sphere", "von Mises-Fisher mixture")
COMPONENTS = (1, 3, 10, 30, 100)
WIDTHS = np.geomspace(0.03, 0.6, 25)


def log_constant(dim: int, kappa: Any) -> Any:
    """Logarithm of the constant of von Mises and Fisher's density."""
    order = dim / 2 - 1
    log_bessel = np.log(ive(order, kappa))
    return order * np.log(kappa) - dim / 2 * np.log(2 * np.pi) - log_bessel - kappa


class Mixture:
    """Mixture of von Mises-Fisher distributions.

    A. Banerjee, I. S. Dhillon, J. Ghosh and S. Sra, "Clustering on the unit hypersphere using von
    Mises-Fisher distributions", Journal of Machine Learning Research 6 (2005).
    """

    def __init__(self, components: int) -> None:
        self.components = components

    def fit(self, X: Any) -> "Mixture":
        """A hundred steps from samples drawn at random."""
        rng = np.random.default_rng(0)
        dim = X.shape[1]
        self.means = X[rng.choice(len(X), self.components, replace=False)]
        self.kappa = np.full(self.components, 5.0 * dim)
        self.weights = np.full(self.components, 1 / self.components)
        for _ in range(100):
            logs = self._logs(X)
            shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
            sums, total = shares.T @ X, shares.sum(axis=0) + 1e-12
            lengths = np.linalg.norm(sums, axis=1) + 1e-12
            r = np.clip(lengths / total, 1e-6, 1 - 1e-6)
            self.means = sums / lengths[:, None]
            self.kappa = np.clip(r * (dim - r**2) / (1 - r**2), 1e-3, 1e4)
            self.weights = total / total.sum()
        return self

    def _logs(self, X: Any) -> Any:
        constant = log_constant(X.shape[1], self.kappa)
        return X @ self.means.T * self.kappa + constant + np.log(self.weights)

    def score_samples(self, X: Any) -> Any:
        """Log-densities."""
        return logsumexp(self._logs(X), axis=1)


class OnSphere:
    """`KernelDensity` with its normal densities made von Mises-Fisher's."""

    def __init__(self, width: float) -> None:
        self.width = width

    def fit(self, X: Any) -> "OnSphere":
        """Fit to unit vectors."""
        self.inner = KernelDensity(bandwidth=self.width).fit(X)
        return self

    def score_samples(self, X: Any) -> Any:
        """Log-densities: exp(-|x - y|²/2h²) is exp(kappa (c - 1)) at kappa = 1/h²."""
        dim, kappa = X.shape[1], self.width**-2
        normal = -dim / 2 * np.log(2 * np.pi * self.width**2)
        return self.inner.score_samples(X) - normal + log_constant(dim, kappa) + kappa


def best_of(models: Any, train: Any) -> Any:
    """The model with the highest mean in five folds, fitted to all."""

    def mean(make: Any) -> float:
        folds = KFold(5, shuffle=True, random_state=0).split(train)
        scores = [make().fit(train[a]).score_samples(train[b]).mean() for a, b in folds]
        return float(np.mean(scores))

    return max(models, key=mean)().fit(train)


def directions(X: Any) -> Any:
    """Twenty components, of length 1."""
    Z = TruncatedSVD(20, random_state=0).fit_transform(X)
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def main() -> None:
    """Print the table."""
    parser = parser_of(__doc__, data=True)
    options = parsed(parser)
    if options.data is None:
        parser.error("give --data DIR")
    known = data_sets(options.data)
    sets = {"digits": load_digits().data}
    sets |= {name: known[name]()[0] for name in ("MNIST", "newsgroups")}
    for name, X in sets.items():
        Z = directions(X)
        Z = Z[np.random.default_rng(0).permutation(len(Z))[:3000]]
        train, test = Z[: len(Z) // 2], Z[len(Z) // 2 :]
        heat = dhsk.HeatKernelDensity(sphere_map="identity").fit(train)
        others = [
            best_of([lambda h=h: OnSphere(h) for h in WIDTHS], train),
            best_of([lambda k=k: Mixture(k) for k in COMPONENTS], train),
        ]
        own, *peers = (float(m.score_samples(test).mean()) for m in (heat, *others))
        given = dict(zip(PEERS, peers, strict=True))
        record("methods", f"density of {len(Z):,} x 20, {name}", own, "held-out log-density", given)


if __name__ == "__main__":
    main()
