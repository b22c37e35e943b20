"""Samples and labels from files and arrays: blocks of rows, maps to the sphere, fingerprints."""

from dhsk.samples.labels import check_labels, read_labels
from dhsk.samples.maps import (
    SphereMap,
    apply_map,
    clr_map,
    hyperspherical_map,
    multinomial_map,
    of_counts,
    parse_sphere_map,
    projective_map,
)
from dhsk.samples.readers import Samples, open_samples
from dhsk.samples.scan import Scan, scan
from dhsk.samples.spectrum import AnyVectorizer, Spectrum, vectorizer_of
from dhsk.samples.substring_counts import spectrum_counts
from dhsk.samples.vectorizer import Vectorizer
from dhsk.samples.zarr_folder import is_gram_store
from dhsk.samples.zeros import ZeroRows, ZeroRule, parse_zero_rule, warn_of_zero_rows

__all__ = [
    "AnyVectorizer",
    "Samples",
    "Scan",
    "Spectrum",
    "SphereMap",
    "Vectorizer",
    "ZeroRows",
    "ZeroRule",
    "apply_map",
    "check_labels",
    "clr_map",
    "hyperspherical_map",
    "is_gram_store",
    "multinomial_map",
    "of_counts",
    "open_samples",
    "parse_sphere_map",
    "parse_zero_rule",
    "projective_map",
    "read_labels",
    "scan",
    "spectrum_counts",
    "vectorizer_of",
    "warn_of_zero_rows",
]
