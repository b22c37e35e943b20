"""Models, checkpoints and results of commands on a server with the interface of S3, here moto."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import dhsk
from dhsk.__main__ import BAD_INPUT, BAD_STORE, DONE
from dhsk.objects.path import ObjectPath
from dhsk.objects.places import opened
from dhsk.progress import Progress

CREDENTIALS = ("a-known-key", "a-known-secret", "a-known-token")

KINDS = {"exact": (), "low rank": ("--rank", 12, "--seed", 3)}


@pytest.fixture
def place(bucket: str, request: Any, monkeypatch: pytest.MonkeyPatch) -> ObjectPath:
    """A prefix of this test's own, and credentials that are found again wherever they go."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    for name, value in zip(names, CREDENTIALS, strict=True):
        monkeypatch.setenv(name, value)
    return ObjectPath(bucket, "".join(c if c.isalnum() else "-" for c in request.node.name))


@pytest.fixture
def samples(run: Any, counts: Any) -> Any:
    """Two classes in files of the current folder."""
    X = counts(80, 12)
    X[40:, :4] += 2
    np.save("x.npy", X)
    Path("y.txt").write_text("".join(f"{label}\n" for label in np.repeat(["a", "b"], 40)))
    return X


def assert_no_credentials(place: ObjectPath, *texts: str) -> None:
    """They are in no object and in no text."""
    objects = [place.joinpath(name).read_bytes() for name in place.sizes()]
    assert objects
    for secret in CREDENTIALS:
        assert not any(secret in text for text in texts)
        assert not any(secret.encode() in found for found in objects)


def interrupt_at(stage: str, count: int) -> Callable[[Progress], None]:
    """Receiver of progress that interrupts a fit."""
    seen: list[Progress] = []

    def interrupt(event: Progress) -> None:
        seen.append(event)
        if sum(event.stage.startswith(stage) for event in seen) == count:
            raise KeyboardInterrupt

    return interrupt


def arrays_of(file: Any) -> dict[str, bytes]:
    """Arrays of a model; the header has the memory that was planned for it too."""
    with opened(file) as whole, np.load(whole) as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files if name != "header"}


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_model_on_a_server_is_that_of_the_disk(
    run: Any, samples: Any, place: ObjectPath, kind: str
) -> None:
    """Trained, described, verified and used there, without credentials in any object."""
    words = ("train", "x.npy", "--labels", "y.txt", *KINDS[kind], "--out")
    assert run(*words, "m")[0] == DONE
    model = place / "m"
    code, out, err = run(*words, model)
    assert (code, err) == (DONE, "")
    assert f"next:   dhsk predict {model} x.npy --out predicted.csv" in out
    assert list(place.sizes()) == ["m"]  # no checkpoint is left
    assert arrays_of(model) == arrays_of(Path("m"))
    for command in ("info", "verify"):
        said = [run(command, file)[:2] for file in ("m", model)]
        assert said[0] == (DONE, said[1][1].replace(str(model), "m"))
    for file, table in (("m", "p.csv"), (model, "q.csv"), (model, place / "p.csv")):
        assert run("predict", file, "x.npy", "--decision", "--out", table)[0] == DONE
    assert Path("p.csv").read_bytes() == Path("q.csv").read_bytes()
    assert Path("p.csv").read_bytes() == (place / "p.csv").read_bytes()
    assert_no_credentials(place, out)


def test_a_damaged_model_on_a_server_is_named(run: Any, samples: Any, place: ObjectPath) -> None:
    """And a missing one; nothing is written over the input."""
    model = place / "m"
    assert run("train", "x.npy", "--labels", "y.txt", "--out", model)[0] == DONE
    whole = model.read_bytes()
    assert run("predict", model, "x.npy", "--out", model)[0] == BAD_INPUT
    assert model.read_bytes() == whole
    model.write_bytes(whole[: len(whole) // 2])
    code, _, err = run("verify", model)
    assert (code, f"{model} is no dhsk model, or not the whole of one" in err) == (BAD_STORE, True)
    code, _, err = run("predict", place / "n", "x.npy", "--out", "p.csv")
    assert (code, f"there is no file {place}/n" in err) == (BAD_INPUT, True)


@pytest.mark.parametrize("kind", list(KINDS))
def test_an_interrupted_training_goes_on_to_the_same_bits(
    samples: Any, place: ObjectPath, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the checkpoint on the server, which the finished fit needs no more."""
    X, y = samples, np.arange(80) % 3
    monkeypatch.setattr("dhsk.solvers.task_groups.GROUP_SECONDS", 0.0)  # each pair is a task
    estimator: Any = dhsk.HeatSVC(C=10.0)
    stage, count = "pairs of classes", 2
    if kind == "low rank":
        estimator, stage, count = dhsk.NystromSVC(12, C=10.0, random_state=3), "training", 3
    expected = estimator.fit_samples(X, y).model_
    with pytest.raises(KeyboardInterrupt):
        estimator.fit_samples(X, y, interrupt_at(stage, count), str(place))
    kept = place.sizes()
    assert kept
    assert_no_credentials(place)
    reads: list[str] = []
    read = ObjectPath.read_bytes
    monkeypatch.setattr(
        ObjectPath, "read_bytes", lambda self: reads.append(self.name) or read(self)
    )
    found = estimator.fit_samples(X, y, journal=place).model_
    assert set(reads) & set(kept)
    for name, array in expected.to_arrays()[1].items():
        assert array.tobytes() == found.to_arrays()[1][name].tobytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_workers_share_no_folder(
    samples: Any, place: ObjectPath, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mapped samples are on the server while a fit runs, and gone afterwards."""
    X, y = samples, np.arange(80) % 2
    monkeypatch.delattr("dhsk.execution.folder.TemporaryFolder.__init__")  # it takes no argument
    staged: list[str] = []

    def look(_: Progress) -> None:
        staged.extend(name for name in place.sizes() if "/rows/" in name)

    with Client(
        n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", processes=False
    ) as client:
        estimator: Any = dhsk.HeatSVC(client=client)
        if kind == "low rank":
            estimator = dhsk.NystromSVC(12, random_state=3, client=client)
        found = estimator.fit_samples(X, y, look, str(place))
    assert staged
    gc.collect()
    assert not any("rows" in name for name in place.sizes())
    expected = estimator.set_params(client=None).fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X))


@pytest.mark.slow
def test_a_cross_validation_on_a_server_is_that_of_the_disk(
    run: Any, samples: Any, place: ObjectPath, address: str
) -> None:
    """Its rows, results and report; another one is refused, and replaces them if asked to."""
    words = ("cv", "x.npy", "--labels", "y.txt", "--folds", 2, "--time-scale", 1)
    words += ("--cluster", address, "--out")
    assert run(*words, "o", "--model")[0] == DONE
    code, out, err = run(*words, place, "--model")
    assert (code, err) == (DONE, "")
    assert f"output: {place}/results.json" in out
    names = (
        "results.csv",
        "results.json",
        "predictions.csv",
        "report.html",
        "run.toml",
        "model.dhsk",
    )
    assert {name for name in place.sizes() if "/" not in name} == set(names)
    here, there = (
        [row["score"] for row in dhsk.CvResult.from_json(file).results_]
        for file in ("o/results.json", place / "results.json")
    )
    assert here == there
    assert not [name for name in place.sizes() if "cosine" in name]
    code, _, err = run(*words, place, "--C", 7)
    assert (code, f"{place} holds the results of a run with other C" in err) == (BAD_INPUT, True)
    left = place / "fits" / "scratch" / "dhsk-killed" / "rows"
    left.write_bytes(b"of a killed run")
    assert run(*words, place, "--C", 7, "--overwrite")[0] == DONE
    assert not left.is_file()
    assert (place / "model.dhsk").size() is None
    assert_no_credentials(place, out, err)


def test_an_interrupted_cross_validation_goes_on(samples: Any, place: ObjectPath) -> None:
    """From the fits on the server."""
    X, y = samples, np.arange(80) % 2
    options: dict[str, Any] = {"time_scale": [0.7, 1.0], "C": [1.0], "cv": 2}
    with pytest.raises(KeyboardInterrupt):
        dhsk.cross_validate(X, y, **options, out=str(place), progress=interrupt_at("fits", 2))
    kept = place.sizes()
    assert any(name.startswith("fits/") for name in kept)
    found = dhsk.cross_validate(X, y, **options, out=place)
    expected = dhsk.cross_validate(X, y, **options)
    for one, other in zip(found.results_, expected.results_, strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}
