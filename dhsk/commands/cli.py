"""The commands of `dhsk`, each in the module of its name, which is loaded when it is needed."""

import click

from dhsk.commands.manner import COMPLETION, LazyCommand

OVERVIEW = {
    "compare": "Say whether two sets of samples come from one distribution.",
    "cv": "Find the best kernel and parameters by cross-validation.",
    "demo": "Run `dhsk cv` on 1797 images of handwritten digits.",
    "features": "Write Nyström features of SAMPLES to a zarr array.",
    "gram": "Compute the Gram matrix of SAMPLES into a zarr store.",
    "info": "Describe a model, a store, samples or the results of dhsk cv.",
    "kernel": "Print values of a heat kernel with proven error bounds.",
    "plan": "Say what a Gram matrix and classifiers would cost.",
    "predict": "Predict the labels of SAMPLES by a MODEL.",
    "report": "Make the page of a cross-validation, or compare several.",
    "train": "Train an SVM on SAMPLES and write it to a file.",
    "verify": "Test every checksum of a Gram store, feature store or model.",
}
"""Each command and the first sentence of its help, which are shown without loading it."""

COMMANDS = {name: LazyCommand(name, short_help=sentence) for name, sentence in OVERVIEW.items()}


@click.group(
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog=COMPLETION,
)
@click.version_option(package_name="dhsk")
def commands() -> None:
    """Exact heat kernels on the hypersphere: Gram matrices larger than memory, and SVMs on them.

    SAMPLES is FILE or FILE:KEY: .npy, .npz, .zarr, .h5ad, .mtx, .parquet, .feather, .csv, .tsv or
    .svm, whose rows are samples; or raw texts: .jsonl, the column KEY of a table, a folder of .txt
    files. FILE may be s3://BUCKET/KEY, for labels too.
    """
