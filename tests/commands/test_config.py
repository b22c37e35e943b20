"""Options from a file, and the file that repeats a run."""

import tomllib
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import dhsk
from dhsk.__main__ import BAD_INPUT, DONE
from dhsk.commands.cli import COMMANDS
from dhsk.commands.config import config_option, write_config
from dhsk.commands.parameters import (
    LENGTHS,
    NUMBERS,
    Names,
    PlaceParameter,
    SourceParameter,
)
from dhsk.commands.table import option


@click.command("some")
@click.argument("samples", type=SourceParameter())
@option("--out", type=PlaceParameter(), required=True)
@option("--kernel", "names", type=Names())
@option("--C", "C", type=NUMBERS, default="1")
@option("--folds", type=click.IntRange(2), default=5)
@option("--tol", type=float, default=1e-3)
@option("--drop-column", "dropped", multiple=True)
@option("--header/--no-header", default=None)
@option("--model", is_flag=True)
@option("--spectrum", type=LENGTHS)
@option("--overwrite", is_flag=True)
@option("--labels", type=SourceParameter())
@config_option
def some(**given: Any) -> None:
    """Say what was given, and write the file that repeats it."""
    click.echo(repr(given))
    Path(given["out"]).mkdir(exist_ok=True)
    write_config(given["out"])


def said(*words: str) -> dict[str, Any]:
    """What a call of the command was given."""
    result = CliRunner().invoke(some, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = eval(result.output, {"PosixPath": Path})
    return found


ALL = (
    "x.npy", "--out", "o", "--kernel", "heat,cosine", "--C", "0.1,1e-07", "--folds", "3",
    "--drop-column", "a b", "--drop-column", 'c"d', "--no-header", "--model", "--spectrum", "1-6",
    "--tol", "0.3", "--labels", "s3://bucket/y.csv:up",
)  # fmt: skip


def test_the_file_that_a_run_writes_repeats_it(tmp_path: Path, monkeypatch: Any) -> None:
    """Every kind of option, to the last bit, from any folder: paths are absolute, URLs stay."""
    monkeypatch.chdir(tmp_path)
    first = said(*ALL, "--overwrite")
    assert Path("o/run.toml").read_text().splitlines()[1:] == [
        f'samples = "{tmp_path}/x.npy"',
        f'out = "{tmp_path}/o"',
        'kernel = ["heat", "cosine"]',
        "C = [0.1, 1e-07]",
        "folds = 3",
        "tol = 0.3",
        'drop-column = ["a b", "c\\"d"]',
        "header = false",
        "model = true",
        'spectrum = "1-6"',
        'labels = "s3://bucket/y.csv:up"',
    ]
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    again = said("--config", "../o/run.toml")
    places = {"samples": f"{tmp_path}/x.npy", "out": tmp_path / "o", "overwrite": False}
    assert again == first | places


@pytest.mark.parametrize(
    "name", ["Straße", "données 数据", "x\N{GRINNING FACE}", 'a"b\\c', "a\x7fb"]
)
def test_names_of_any_characters_are_read_again(
    name: str, tmp_path: Path, monkeypatch: Any
) -> None:
    """TOML has neither JSON's pairs of surrogates nor bare control characters."""
    monkeypatch.chdir(tmp_path)
    said(f"{name}.npy", "--out", "o", "--drop-column", name)
    again = said("--config", "o/run.toml")
    assert (again["samples"], again["dropped"]) == (f"{tmp_path}/{name}.npy", (name,))


def test_the_command_line_wins(tmp_path: Path, monkeypatch: Any) -> None:
    """And the new file says so; paths of a file are relative to where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("my.toml").write_text('samples = "x.npy"\nout = "o"\nfolds = 4\ntol = 1\nC = 2.5\n')
    found = said("--config", "my.toml", "--folds", "7", "--out", "p")
    assert (found["folds"], found["tol"], found["C"]) == (7, 1.0, [2.5])
    assert (found["samples"], found["out"]) == ("x.npy", Path("p"))
    kept = tomllib.loads(Path("p/run.toml").read_text())
    assert (kept["folds"], kept["out"], kept["C"]) == (7, f"{tmp_path}/p", [2.5])
    assert not Path("o").exists()


def test_a_file_of_ones_own_in_the_folder_stays(tmp_path: Path, monkeypatch: Any) -> None:
    """It repeats the run as it is; with other words on the command line it is written again."""
    monkeypatch.chdir(tmp_path)
    Path("o").mkdir()
    own = '# mine\nsamples = "x.npy"\nout = "o"\nfolds = 4\n'
    Path("o/run.toml").write_text(own)
    said("--config", "o/run.toml")
    assert Path("o/run.toml").read_text() == own
    said("--config", "o/run.toml", "--folds", "6")
    assert tomllib.loads(Path("o/run.toml").read_text())["folds"] == 6


WRONG = {
    "no file": (None, "there is no file my.toml for --config: name a file of options"),
    "no TOML": ("folds: 3", r"my.toml is no TOML: .*Each line is KEY = VALUE"),
    "no text": (b"\xff", "my.toml is no TOML"),
    "unknown": ("drop_colum = 'a'", "drop_colum is no option of .*: did you mean drop-column"),
    "quite unknown": ("xyz = 1", r"xyz is no option of some \(some --help-all lists them"),
    "of one call": ("overwrite = true", "overwrite is no option"),
    "number for a flag": ("model = 1", "model must be true or false, but it is 1"),
    "flag for a number": ("folds = true", "folds must be text or a number, but it is True"),
    "list for one": ("folds = [3, 4]", r"folds must be text or a number, but it is \[3, 4\]"),
    "table": ("[C]\na = 1", "C must be text or a number, or a list of them, but it is {'a': 1}"),
    "words for a number": ("folds = 'many'", "my.toml: folds: 'many' is not a valid integer"),
    "too small": ("folds = 1", "my.toml: folds: 1 is not in the range"),
    "no kernel": ("kernel = ['heat', 'hot']", "my.toml: kernel: 'hot' is not one of heat"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_in_a_file_is_named(case: str, tmp_path: Path, monkeypatch: Any) -> None:
    """The file, the key, and the way out."""
    monkeypatch.chdir(tmp_path)
    content, message = WRONG[case]
    if content is not None:
        own = content if isinstance(content, bytes) else content.encode()
        Path("my.toml").write_bytes(own)
    with pytest.raises(dhsk.InputError, match=message):
        CliRunner().invoke(some, ["x", "--out", "o", "--config", "my.toml"], catch_exceptions=False)
    assert not Path("o").exists()


def test_every_option_of_cv_can_stand_in_a_file() -> None:
    """Each with the name that it has on the command line."""
    command = COMMANDS["cv"].loaded
    from dhsk.commands.config import _kept
    from dhsk.commands.table import key_of

    keys = {key_of(one) for one in _kept(click.Context(command))}
    words = {word for one in command.params for word in one.opts if word.startswith("--")}
    once = {"help-all", "quiet", "verbose", "config", "overwrite", "id"}
    assert keys - {"samples"} == {word.removeprefix("--") for word in words} - once


@pytest.mark.slow
def test_a_cross_validation_is_repeated(run: Any, address: str, counts: Any) -> None:
    """Into another folder, with the same results; said in the output, and after the end."""
    X = counts(60, 12)
    X[30:, :4] += 3
    np.save("x.npy", X)
    Path("y.txt").write_text("up\n" * 30 + "down\n" * 30)
    words = ("--kernel", "heat,linear", "--C", "0.1,3", "--folds", "3", "--seed", "4")
    code, out, err = run(
        "cv", "x.npy", "--labels", "y.txt", *words, "--cluster", address, "--out", "found"
    )
    assert code == DONE, err
    assert "repeat: dhsk cv --config found/run.toml" in out
    assert run("cv", "--config", "found/run.toml", "--out", "other")[0] == DONE
    rows = [
        [row | {"seconds": 0} for row in dhsk.CvResult.from_json(f"{one}/results.json").results_]
        for one in ("found", "other")
    ]
    assert rows[0] == rows[1]
    again = run("cv", "--config", "found/run.toml")
    assert (again[0], "has the results of this run" in again[1]) == (DONE, True)
    code, _, err = run("cv", "--config", "found/run.toml", "--C", "5")
    assert (code, "other C:" in err) == (BAD_INPUT, True)


def test_a_name_that_is_no_utf8_is_left_to_the_command_line(tmp_path: Path) -> None:
    """TOML is UTF-8, names of files are bytes: the rest repeats, and the file says what to add."""
    out = tmp_path / "o\udcff"
    said("x.npy", "--out", str(out), "--folds", "3")
    lines = (out / "run.toml").read_text("utf-8").splitlines()
    assert lines[2] == "# out is not here, as its name is no UTF-8: add it on the command line."
    again = said("--config", str(out / "run.toml"), "--out", str(tmp_path / "p"))
    assert (again["folds"], again["samples"]) == (3, str(Path.cwd() / "x.npy"))
