"""Support vector machines on Gram matrices, exact, and their cross-validation."""

from dhsk.svm.cv import cross_validate
from dhsk.svm.result import CvResult

__all__ = ["CvResult", "cross_validate"]
