"""Results of a cross-validation -> one HTML page that opens without a network."""

from dhsk.report.page import write_report

__all__ = ["write_report"]
