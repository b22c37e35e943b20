"""The command `dhsk demo`: a cross-validation of samples that come with scikit-learn."""

from dataclasses import asdict
from pathlib import Path

import click

from dhsk.commands.console import say
from dhsk.commands.cv import cv
from dhsk.commands.options import Cluster, cluster_options
from dhsk.commands.parameters import PathParameter


@click.command("demo")
@click.option("--out", type=PathParameter(), default="dhsk-demo")
@cluster_options
@click.pass_context
def demo(context: click.Context, out: Path, cluster: Cluster) -> None:
    """Run `dhsk cv` on 1797 images of handwritten digits."""
    import numpy as np
    from sklearn.datasets import load_digits

    digits = load_digits()
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "digits.npy", digits.data)
    (out / "labels.txt").write_text("".join(f"{label}\n" for label in digits.target))
    say(f"1797 images of digits, 64 pixels each: {out / 'digits.npy'}, {out / 'labels.txt'}")
    where = asdict(cluster)
    del where["part"]  # of commands that have parts
    context.invoke(
        cv,
        samples=str(out / "digits.npy"),
        labels=str(out / "labels.txt"),
        out=out,
        names=["heat", "parametrix", "cosine", "linear", "gaussian"],
        time_scale=[0.2, 0.3, 0.5, 1.0],
        sigma=[15.0, 25.0],
        C=[1.0, 10.0],
        **where,
    )
    say("then:   dhsk cv YOUR_SAMPLES --labels YOUR_LABELS --out DIR")
