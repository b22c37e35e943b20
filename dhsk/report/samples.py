"""Sections on single samples: ROC curves, a map, and the mistakes one by one."""

from dhsk.report import map_figure, roc_figure
from dhsk.report.markup import Html, figure_row, section, table
from dhsk.report.words import brief, count_of, score, unbroken, whole
from dhsk.results.parts import Results


def roc(results: Results) -> Html:
    """Return the curves of decisions for held-out samples; empty if there are none."""
    curves = results.examined.curves if results.examined else ()
    if not curves:
        return Html()
    two = len(results.classes) == 2
    what = f"{curves[0].positive} against the other" if two else "each class against the rest"
    note = (
        f"Best candidate, {what}: how many samples of the class are found (up) at what rate of "
        "false alarms (right), as the threshold of the decision moves. Each sample is decided by "
        "the fold that did not train on it. 1 is the best area under a curve, 0.5 that of guessing."
    )
    parts = [figure_row([roc_figure.roc(curves)])]
    if len(curves) > roc_figure.NAMED:
        rows = [(str(curve.positive), score(curve.area)) for curve in curves]
        parts.append(table(("class", "area under the curve"), rows, class_="numbers sortable"))
    return section("ROC", note, *parts, anchor="roc")


def picture(results: Results) -> Html:
    """Return the samples in the plane; empty if there is no map."""
    found = results.examined.map if results.examined else None
    if found is None:
        return Html()
    among = len(found.samples)
    which = (
        "all samples" if among >= sum(results.class_counts) else f"{whole(among)} of the samples"
    )
    together = unbroken(f"{100 * sum(found.shares):.3g} %")
    note = (
        f"Kernel PCA of {which} under the best kernel: the plane in which they differ most, with "
        f"{together} of their variance. The classifier uses all other directions too, so classes "
        "that overlap here may be apart. Rings are samples that the chosen candidate took for "
        "another class while they were held out."
    )
    shown = figure_row([map_figure.sample_map(results, found)])
    return section("The samples in a plane", note, shown, anchor="map")


def mistakes(results: Results) -> Html:
    """Return the samples that were taken for another class; empty if this is not known."""
    found = results.examined
    if found is None:
        return Html()
    if not found.n_wrong:
        return section("Mistakes", "Every held-out sample was predicted right.", anchor="mistakes")
    named = any(one.name for one in found.wrong)
    sure = any(one.margin is not None for one in found.wrong)
    head = ("sample", *(("row",) if named else ()), "class", "taken for",
            *(("how sure",) if sure else ()))  # fmt: skip
    rows = [
        (
            one.name or one.sample, *((one.sample,) if named else ()),
            str(one.true), str(one.predicted), *((brief(one.margin),) if sure else ()),
        )
        for one in found.wrong
    ]  # fmt: skip
    some = len(found.wrong) < found.n_wrong
    listed = f", of which {len(found.wrong)} are listed" if some else ""
    note = (
        f"{count_of(found.n_wrong, 'sample')} that the chosen candidate took for another "
        f"class{listed}; rows count from 0."
    )
    if sure:
        note += (
            " How sure: the decision for the predicted class less that for the true one. Sure "
            "mistakes are worth a look: their labels may be wrong."
        )
    long = " long" if len(rows) > 20 else ""
    shown = table(head, rows, class_=f"mistakes sortable{long}")
    return section("Mistakes", note, shown, anchor="mistakes")
