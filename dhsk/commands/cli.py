"""The commands of `dhsk`: parse, call one function, print."""

from dataclasses import asdict
from pathlib import Path

import click

from dhsk.bars import show_progress
from dhsk.commands.connecting import connected_if_asked, wrong_out
from dhsk.commands.console import say
from dhsk.commands.cv import cv
from dhsk.commands.info import info
from dhsk.commands.inputs import open_samples_of
from dhsk.commands.kernel import kernel
from dhsk.commands.manner import COMPLETION, Commands
from dhsk.commands.options import (
    ClusterOptions,
    KernelOptions,
    MapOptions,
    StoreOptions,
    TableOptions,
    TileOptions,
    cluster_options,
    kernel_options,
    map_options,
    store_options,
    table_options,
    tile_options,
)
from dhsk.commands.outcome import Outcome
from dhsk.commands.parameters import PathParameter
from dhsk.commands.plan import plan
from dhsk.commands.predict import predict
from dhsk.commands.report import report
from dhsk.commands.train import train
from dhsk.commands.verify import verify
from dhsk.execution.workers import resources_of
from dhsk.gram import GramMatrix, compute_gram
from dhsk.gram.prepare import check_kernels
from dhsk.units import human_seconds, parse_bytes


@click.group(
    cls=Commands,
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


for command in (kernel, plan, cv, report, train, predict, info, verify):
    commands.add_command(command)


@commands.command()
@click.option("--out", type=PathParameter(), default="dhsk-demo")
@cluster_options
@click.pass_context
def demo(context: click.Context, out: Path, cluster: ClusterOptions) -> None:
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
        **asdict(cluster),
    )
    say("then:   dhsk cv YOUR_SAMPLES --labels YOUR_LABELS --out DIR")


@commands.command()
@click.argument("samples")
@store_options
@kernel_options
@map_options
@tile_options
@table_options
@cluster_options
def gram(
    samples: str,
    target: StoreOptions,
    kernel: KernelOptions,
    mapping: MapOptions,
    tiles: TileOptions,
    table: TableOptions,
    cluster: ClusterOptions,
) -> None:
    """Compute the Gram matrix of SAMPLES into a zarr store; run it again after an interrupt."""
    opened = open_samples_of(samples, table)
    made = kernel.make(opened.shape[1])
    chosen = check_kernels([made], [opened], mapping.sphere_map, tiles.product_dtype)
    outcome = Outcome(made, tiles.product_dtype, local=cluster.cluster == "local")
    connection = connected_if_asked(cluster, needed=target.part is None)
    with connection as client, show_progress() as progress, wrong_out():
        with outcome.watched(progress) as watched:
            G = compute_gram(
                opened,
                made,
                sphere_map=chosen,
                zero_rows=mapping.zero_rows,
                store=target.out,
                memory=cluster.memory,
                client=client,
                part=target.part,
                **asdict(tiles),
                progress=watched,
            )
        resources = resources_of(client, parse_bytes(cluster.memory) if cluster.memory else None)
    _say_gram(G, outcome, target)
    if target.part is None:
        outcome.show(G, opened, resources)
        say(f"output: {target.out}")
        say(
            f"next:   dhsk cv {target.out} --labels LABELS --C 0.1,1,10 --out DIR, or "
            f"dhsk info {target.out}"
        )


def _say_gram(G: GramMatrix, outcome: Outcome, target: StoreOptions) -> None:
    """Say what was computed: the matrix, or a part of it and what is to be done next."""
    n, m = G.shape
    what = f"{n:,} x {m:,} {G.dtype} of {G.kernel.label}"
    if target.part is None:
        say(f"{what}, {G.tiling.n_tiles} tiles, {human_seconds(outcome.seconds)}")
        return
    number, count = target.part
    say(
        f"{what}, part {number} of {count}: {outcome.total - (outcome.found or 0)} of "
        f"{outcome.total} tiles computed, {human_seconds(outcome.seconds)}"
    )
    say(f"output: {target.out}")
    say("next:   when all parts have ended, the same command without --part, which finishes it")
