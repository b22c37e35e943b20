"""The page of a test of two sets of samples: the answer, and which samples differ the most."""

from collections.abc import Sequence

import numpy as np

from dhsk.arrays import Floats, Indices
from dhsk.objects.places import Place
from dhsk.report.document import write_page
from dhsk.report.drawing import drawing, frame, legend
from dhsk.report.markup import Html, Keyed, figure_row, joined, listing, section, table, tag
from dhsk.report.words import brief, count_of, duration, shortened, whole
from dhsk.results.two_samples import ComparedKernel, TwoSamples

LISTED = 25
"""Samples of each set in the table of the most different ones."""

BINS = 60


def write_two_samples(
    found: TwoSamples,
    witness: Floats,
    names: Sequence[str] | None,
    path: str | Place,
    beside: Sequence[str] = (),
) -> None:
    """Write a test of two sets as one HTML page that loads nothing.

    Parameters
    ----------
    found
        Results of the test.
    witness
        Mean kernel of each sample with A less that with B, (N,), the samples of A first.
    names
        Names of the samples, if they have any.
    path
        The file to write; its folder must exist.
    beside
        Names of files in the same folder, which the page links to.
    """
    title = " and ".join(f"{one.name}: {_file(one.source)}" for one in found.sets)
    lede = tag("p", found.answer, class_="lede")
    head = tag("header", tag("h1", title), lede, tag("p", found.meaning, class_="decision"))
    sections = [
        _histogram(found, witness),
        _most_different(found, witness, names),
        _kernels(found),
        _origin(found, beside),
    ]
    write_page(path, title, head, sections)


def most_different(witness: Floats, first: int) -> Indices:
    """All samples, first those that are more like their own set than like the other one.

    The first set has the first samples, whose witness is large where that is so.
    """
    own = np.where(np.arange(len(witness)) < first, witness, -witness)
    order: Indices = np.argsort(-own, kind="stable")
    return order


def _file(source: str) -> str:
    return source.rstrip("/").rpartition("/")[2]


def _histogram(found: TwoSamples, witness: Floats) -> Html:
    words = (
        "The witness of a sample is its mean similarity to the samples of A less that to the "
        "samples of B, itself left out. Where the sets differ, A lies further to the right than B. "
        f"The means differ by {brief(found.unbiased)}, the squared maximum mean discrepancy."
    )
    first = found.sets[0].n_samples
    edges = np.linspace(witness.min(), witness.max(), BINS + 1)
    if edges[0] == edges[-1]:
        return section("Witness", f"{words} All samples have the same.", anchor="witness")
    with drawing("witness", 6.4, 3.0) as picture:
        ax = picture.axes
        parts = (witness[:first], witness[first:])
        for one, values, colour in zip(found.sets, parts, ("#31688e", "#c77b1f"), strict=True):
            share = np.histogram(values, edges)[0] * (100 / len(values))
            label = f"{one.name}: {shortened(_file(one.source))}"
            ax.stairs(share, edges, fill=True, color=colour, alpha=0.35)
            ax.stairs(share, edges, color=colour, linewidth=1.4, label=label)
        ax.axvline(0, color="#888888", linewidth=0.8, linestyle="--")
        frame(ax, "witness: like B on the left, like A on the right", "% of the samples of a set")
        legend(ax)
        means = ", ".join(f"{v.mean():.3g}" for v in parts)
        svg = picture.svg("Histogram of the witness", f"Means of A and of B: {means}.")
    return section("Witness", words, figure_row([svg]), anchor="witness")


def _most_different(found: TwoSamples, witness: Floats, names: Sequence[str] | None) -> Html:
    words = (
        "Samples that are like their own set and unlike the other. Rows count from 0 in each file; "
        "witness.csv has all samples. The order is no test of single samples: also where the sets "
        "do not differ, some come first."
    )
    first, order = found.sets[0].n_samples, most_different(witness, found.sets[0].n_samples)
    parts = []
    for number, one in enumerate(found.sets):
        start = number * first
        own = order[(order >= first) == bool(number)][:LISTED]
        rows = [
            (*([names[k]] if names else []), k - start, Keyed(brief(witness[k]), witness[k]))
            for k in own.tolist()
        ]
        heads = (*(["sample"] if names else []), "row", "witness")
        shown = table(heads, rows, class_="numbers sortable")
        parts.append(tag("div", tag("h3", f"{one.name}: {_file(one.source)}"), shown))
    return section("The most different samples", words, tag("div", *parts, class_="figures"),
                   anchor="samples")  # fmt: skip


def _kernels(found: TwoSamples) -> Html:
    words = (
        "The statistic is the unbiased estimate of the squared maximum mean discrepancy, in units "
        "of its root mean square over the permutations. The largest is tested, against the largest "
        "of every permutation, so the p-value stays exact however many kernels are tried. "
        "A small time sees small differences between near samples, a large one broad ones."
    )
    best = found.kernels[found.best]

    def mark(one: ComparedKernel) -> str:
        return "tested" if one is best else ""

    columns = {
        "kernel": lambda one: one.kernel,
        "statistic": lambda one: Keyed(brief(one.statistic), one.statistic),
        "": mark,
    }
    shown = listing(found.kernels, columns, class_="numbers sortable")
    return section("Kernels", words, shown, anchor="kernels")


def _origin(found: TwoSamples, beside: Sequence[str]) -> Html:
    facts: list[tuple[str, object]] = []
    for one in found.sets:
        zeros = f", {whole(one.zero_rows)} of them all zero" if one.zero_rows else ""
        facts += [
            (one.name, f"{one.source}, {count_of(one.n_samples, 'sample')}{zeros}"),
            (f"hash of {one.name}", one.fingerprint),
        ]
    links = joined(part for name in beside for part in (tag("a", name, href=name), " "))
    facts += [
        ("features", whole(found.dim)),
        ("map to the sphere", found.sphere_map),
        ("squared discrepancy", f"{found.unbiased:.6g} unbiased, {found.biased:.6g} biased"),
        ("permutations", whole(found.permutations)),
        ("time", duration(found.seconds)),
        ("made by", f"dhsk {found.version}"),
        ("date", found.created),
        *([("all numbers", links)] if beside else []),
    ]
    return section("How it was made", "", table((), facts, class_="facts"), anchor="origin")
