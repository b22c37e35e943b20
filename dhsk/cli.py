"""The commands of `dhsk`: parse, call one function, print."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from distributed import Client

from dhsk.cluster import connect
from dhsk.console import print_pairs, print_table, say, show_progress
from dhsk.errors import InputError, StoreMismatchError
from dhsk.gram import GramMatrix, compute_gram, open_gram
from dhsk.gram.prepare import check_kernels
from dhsk.gram.repair import repair_gram
from dhsk.gram.sizes import human_bytes, human_seconds, parse_bytes
from dhsk.gram.store import GramStore
from dhsk.gram.workers import resources_of
from dhsk.kernel_command import kernel
from dhsk.options import (
    KERNELS,
    Names,
    Numbers,
    cluster_options,
    drop_option,
    kernel_options,
    make_kernel,
    make_kernels,
    map_option,
    own_label_column,
    tile_options,
)
from dhsk.outcome import Outcome
from dhsk.plan_command import plan
from dhsk.samples import Samples, SphereMap, is_gram_store, open_samples, read_labels
from dhsk.train_command import predict, train

if TYPE_CHECKING:
    from dhsk.svm import CvResult


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dhsk")
def commands() -> None:
    """Exact heat kernels on the hypersphere: Gram matrices larger than memory, and SVMs on them.

    SAMPLES is FILE or FILE:KEY: .npy, .npz, .zarr, .h5ad, .csv, .tsv, .svm; rows are samples.
    """


commands.add_command(kernel)
commands.add_command(plan)
commands.add_command(train)
commands.add_command(predict)


@commands.command()
@click.option("--out", type=click.Path(path_type=Path), default="dhsk-demo", show_default=True)
@cluster_options
@click.pass_context
def demo(
    context: click.Context, out: Path, cluster: str, workers: int | None, memory: str | None
) -> None:
    """Run the main job on 1797 images of handwritten digits."""
    import numpy as np
    from sklearn.datasets import load_digits

    digits = load_digits()
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "digits.npy", digits.data)
    (out / "labels.txt").write_text("".join(f"{label}\n" for label in digits.target))
    say(f"1797 images of digits, 64 pixels each: {out / 'digits.npy'}, {out / 'labels.txt'}")
    context.invoke(
        cv,
        source=str(out / "digits.npy"),
        labels=str(out / "labels.txt"),
        out=out,
        names=["heat", "parametrix", "cosine", "linear", "gaussian"],
        time_scale=[0.2, 0.3, 0.5, 1.0],
        sigma=[15.0, 25.0],
        C=[1.0, 10.0],
        cluster=cluster,
        workers=workers,
        memory=memory,
    )
    say("then:   dhsk cv YOUR_SAMPLES --labels YOUR_LABELS --out DIR")


@commands.command()
@click.argument("samples")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the store.")
@kernel_options
@map_option
@tile_options
@drop_option
@cluster_options
def gram(
    samples: str,
    out: Path,
    sphere_map: SphereMap | None,
    drop_columns: tuple[str, ...],
    cluster: str,
    workers: int | None,
    memory: str | None,
    dtype: str,
    product_dtype: str,
    tile: int | None,
    layout: str,
    **kernel: Any,
) -> None:
    """Compute the Gram matrix of SAMPLES into a zarr store; run again, it goes on where it was."""
    opened = open_samples(samples, drop_columns=drop_columns)
    made = make_kernel(dim=opened.shape[1], **kernel)
    chosen = check_kernels([made], [opened], sphere_map, product_dtype)
    outcome = Outcome(made, product_dtype, local=cluster == "local")
    with _connected(cluster, workers) as client, show_progress() as progress, _wrong_out():
        with outcome.watched(progress) as watched:
            G = compute_gram(
                opened,
                made,
                sphere_map=chosen,
                store=out,
                dtype=dtype,
                product_dtype=product_dtype,
                tile=tile,
                memory=memory,
                client=client,
                layout=layout,
                progress=watched,
            )
        resources = resources_of(client, parse_bytes(memory) if memory else None)
    n, m = G.shape
    say(
        f"{n:,} x {m:,} {G.dtype} of {made.label}, {G.tiling.n_tiles} tiles, "
        f"{human_seconds(outcome.seconds)}"
    )
    outcome.show(G, opened, resources)
    say(f"output: {out}")
    say(f"next:   dhsk cv {out} --labels LABELS --C 0.1,1,10 --out DIR, or dhsk info {out}")


@commands.command()
@click.argument("store", type=click.Path(path_type=Path))
def info(store: Path) -> None:
    """Say what a Gram store holds, complete or not."""
    opened = GramStore.open(store)
    header, missing = opened.header, len(opened.missing_tiles())
    total = header.tiling.n_tiles
    size = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    rows = [
        ("matrix", f"{header.n_rows:,} x {header.n_cols:,} {header.dtype}, {header.layout}"),
        ("kernel", ", ".join(kernel.label for kernel in opened.kernels)),
        (
            "samples",
            f"dim {header.dim:,}, map {header.sphere_map}, "
            f"fingerprint {'+'.join(header.fingerprints)}",
        ),
        ("tiles", f"{total - missing:,} of {total:,} done, {header.tile:,} x {header.tile:,} each"),
        ("on disk", human_bytes(size)),
    ]
    print_pairs(f"Gram store {store}, schema {header.schema}", rows)
    if missing:
        say("next:   run the command that made it again: it computes the missing tiles only")
    else:
        say(f"next:   dhsk verify {store}, or dhsk cv {store} --labels LABELS --out DIR")


@commands.command()
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--repair", metavar="SAMPLES", help="Recompute what is damaged from these samples.")
@drop_option
@cluster_options
def verify(
    store: Path,
    repair: str | None,
    drop_columns: tuple[str, ...],
    cluster: str,
    workers: int | None,
    memory: str | None,
) -> None:
    """Test every checksum of a store: of its tiles, of the samples in it, of its description."""
    opened = GramStore.open(store)
    if repair is None:
        opened.check_sound()
    else:
        samples = open_samples(repair, drop_columns=drop_columns)
        with _connected(cluster, workers) as client, show_progress() as progress:
            made = repair_gram(store, samples, memory=memory, client=client, progress=progress)
        say(
            f"{len(made)} damaged or missing tiles computed again{': ' if made else ''}"
            + ", ".join(map(str, made))
        )
    say(f"{store}: all {opened.header.tiling.n_tiles} tiles are sound")
    say(f"next:   dhsk cv {store} --labels LABELS --out DIR")


@commands.command()
@click.argument("source", metavar="STORE|SAMPLES")
@click.option("--labels", help="FILE or FILE:COLUMN, one label a sample. [default: svmlight's own]")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Results folder.")
@click.option(
    "--kernel",
    "names",
    type=Names(),
    help="One or more of " + ", ".join(KERNELS) + ". [default: a store's own, else heat]",
)
@click.option(
    "--time-scale",
    type=Numbers(),
    help="Times of heat and parametrix kernels, in units of log(dim)/dim. [default: 0.7,1,1.4]",
)
@click.option(
    "--parametrix-scale",
    type=Numbers(),
    help="Times of parametrix kernels alone: in high dimension they need 10 to 30 times more.",
)
@click.option("--sigma", type=Numbers(), default="1", show_default=True, help="Gaussian widths.")
@click.option("--C", "C", type=Numbers(), default="0.1,1,10", show_default=True)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the shuffled folds.")
@map_option
@drop_option
@cluster_options
def cv(
    source: str,
    labels: str | None,
    out: Path,
    names: list[str] | None,
    time_scale: list[float] | None,
    parametrix_scale: list[float] | None,
    sigma: list[float],
    C: list[float],
    folds: int,
    seed: int,
    sphere_map: SphereMap | None,
    drop_columns: tuple[str, ...],
    cluster: str,
    workers: int | None,
    memory: str | None,
) -> None:
    """Cross-validate exact SVMs over kernels, times and C, on a Gram store or on samples."""
    from dhsk.svm import cross_validate

    opened, dim, n = _open_source(source, labels, drop_columns)
    y = read_labels(labels or source, n, folds)
    kernels = None
    if names or time_scale or not isinstance(opened, GramMatrix):
        kernels = make_kernels(names or ["heat"], dim, time_scale, parametrix_scale, sigma)
    out.mkdir(parents=True, exist_ok=True)
    with _connected(cluster, workers) as client, show_progress() as progress, _wrong_out():
        result = cross_validate(
            opened,
            y,
            kernels=kernels,
            C=C,
            cv=folds,
            sphere_map=sphere_map,
            memory=memory,
            client=client,
            store=out / "gram",
            seed=seed,
            progress=progress,
        )
    result.to_json(out / "results.json")
    result.to_csv(out / "results.csv")
    result.report(out / "report.html")
    _print_result(result)
    say(f"output: {out / 'results.json'}, results.csv, report.html")
    say(f"next:   open {out / 'report.html'} in a browser")


def _open_source(
    source: str, labels: str | None, drop_columns: tuple[str, ...]
) -> tuple[GramMatrix | Samples, int, int]:
    """Gram matrix or samples, their dim and their number."""
    if is_gram_store(Path(source)):
        G = open_gram(source)
        return G, G.dim, G.shape[0]
    drop = (*drop_columns, *own_label_column(source, labels))
    samples = open_samples(source, drop_columns=drop)
    return samples, samples.shape[1], samples.shape[0]


@contextmanager
def _connected(cluster: str, workers: int | None) -> Iterator[Client]:
    """Client of the cluster that was asked for; a local one ends with it."""
    with connect(cluster, **({} if workers is None else {"n_workers": workers})) as client:
        if cluster == "local" and find_spec("bokeh"):
            click.echo(f"dashboard: {client.dashboard_link}", err=True)
        yield client
        _close_undisturbed(client)


def _close_undisturbed(client: Client) -> None:
    """End what was connected: interrupted in this, Dask takes ten seconds and prints tracebacks."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        client.close()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _wrong_out() -> Iterator[None]:
    """Say that --out is wrong where it names the store of something else: the store is not."""
    try:
        yield
    except StoreMismatchError as error:
        raise InputError(str(error)) from error


def _print_result(result: "CvResult") -> None:
    """Print the best cell of every kernel, or the best cells of the only one, and the winner."""
    ranked = sorted(result.summary_, key=lambda row: -row["mean"])
    by_kernel = {row["kernel"]: row for row in reversed(ranked)}
    several = len(by_kernel) > 1
    shown = [row for row in ranked if row is by_kernel[row["kernel"]]] if several else ranked[:10]
    print_table(
        ["kernel", "C", "mean accuracy", "std", "support vectors", "worst KKT"],
        [
            (
                row["label"],
                f"{row['C']:g}",
                f"{row['mean']:.4f}",
                f"{row['std']:.4f}",
                f"{row['n_support']:.0f}",
                f"{row['kkt']:.1e}",
            )
            for row in shown
        ],
    )
    if len(ranked) > len(shown):
        which = "the best cell of each kernel" if several else "the ten best cells"
        say(f"({which}; all {len(ranked)} in results.csv)")
    best, folds = result.best_, result.data["folds"]["n"]
    say(
        f"best:   {best['label']}, C = {best['C']:g}: mean accuracy {best['mean']:.4f} "
        f"over {folds} folds"
    )
