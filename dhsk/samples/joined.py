"""Two sets of samples, one after the other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from dhsk.arrays import Rows, stacked
from dhsk.samples.base import Samples


@dataclass(frozen=True, eq=False)
class JoinedSamples(Samples):
    """The samples of the first part and then those of the second; sparse if one of them is."""

    parts: tuple[Samples, Samples]

    @classmethod
    def of(cls, first: Samples, second: Samples) -> "JoinedSamples":
        """Join samples of the same features in the same order."""
        parts, (n, dim) = (first, second), first.shape
        sparse = any(part.is_sparse for part in parts)
        entries = [part.shape[0] * dim if part.nnz is None else part.nnz for part in parts]
        pointers = [part.indptr for part in parts]
        indptr = None
        if pointers[0] is not None and pointers[1] is not None:
            indptr = np.concatenate([pointers[0], pointers[0][-1] + pointers[1][1:]])
        return cls(
            f"{first.source} and {second.source}",
            (n + second.shape[0], dim),
            nnz=sum(entries) if sparse else None,
            indptr=indptr,
            feature_names=first.feature_names or second.feature_names,
            names=lambda: _names_of(parts),
            parts=parts,
        )

    def _blocks(self, rows: int) -> Iterator[Rows]:
        waiting: list[Any] = []
        lack = rows
        for part in self.parts:
            for read in part.blocks(rows):
                whole: Any = csr_array(read) if self.is_sparse else read
                while whole.shape[0] >= lack:
                    yield stacked([*waiting, whole[:lack]])
                    whole, waiting, lack = whole[lack:], [], rows
                if whole.shape[0]:
                    waiting.append(whole)
                    lack -= whole.shape[0]
        if waiting:
            yield stacked(waiting)


def _names_of(parts: Iterable[Samples]) -> Iterable[str] | None:
    """Names of all samples; None unless every part has names."""
    found = [part.each_id() for part in parts]
    known = [ids for ids in found if ids is not None]
    return chain(*known) if len(known) == len(found) else None
