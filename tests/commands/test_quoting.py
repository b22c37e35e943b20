"""Commands that are proposed can be typed as they are, in the shells of Windows too."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dhsk import systems
from dhsk.__main__ import DONE
from dhsk.errors import InputError, optional_module

TABLE = "a,b,c,kind\n" + "1,2,4,u\n3,1,9,v\n" * 20


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands as they are proposed there; names with a backslash are files here too."""
    monkeypatch.setattr(systems, "is_windows", lambda: True)


def test_a_backslash_needs_no_quotes_on_windows(run: Any, windows: None) -> None:
    """Whose cmd.exe passes single quotes on as parts of the name."""
    run("--version")  # stands in the empty folder
    Path(r"found\x.csv").write_text(TABLE)
    out = run("info", r"found\x.csv")[1]
    assert "next:   dhsk cv found\\x.csv --labels found\\x.csv:kind --out found\n" in out
    words = ("--labels", r"found\x.csv:kind", "--kernel", "cosine", "--folds", 2, "--C", 1)
    code, out, _ = run("cv", r"found\x.csv", *words, "--out", r"o\cv")
    assert (code, "repeat: dhsk cv --config o\\cv/run.toml\n" in out) == (DONE, True)


def test_a_blank_needs_double_quotes_on_windows(run: Any, windows: None) -> None:
    """In each of its shells."""
    run("--version")
    Path("my data.csv").write_text(TABLE)
    out = run("info", "my data.csv")[1]
    assert 'next:   dhsk cv "my data.csv" --labels "my data.csv:kind" --out found\n' in out


def test_places_of_stores_and_models_are_quoted(run: Any) -> None:
    """As those of samples are."""
    run("--version")
    Path("x.csv").write_text(TABLE)
    kernel = ("--kernel", "cosine")
    labels, dropped = ("--labels", "x.csv:kind", "--C", 1), ("--drop-column", "kind")
    assert run("gram", "x.csv", *dropped, *kernel, "--out", "a b")[0] == DONE
    assert run("train", "x.csv", *labels, *kernel, "--out", "m 1.dhsk")[0] == DONE
    assert run("cv", "x.csv", *labels, *kernel, "--folds", 2, "--out", "c v")[0] == DONE
    assert run("features", "x.csv", *dropped, *kernel, "--rank", 2, "--out", "f e")[0] == DONE
    assert "next:   dhsk cv 'a b' --labels" in run("verify", "a b")[1]
    assert "next:   dhsk predict 'm 1.dhsk' SAMPLES" in run("verify", "m 1.dhsk")[1]
    assert "dhsk verify 'a b', or dhsk cv 'a b' --labels" in run("info", "a b")[1]
    assert "(dhsk report 'c v' makes it anew)" in run("info", "c v")[1]
    said = run("info", "f e")[1]
    assert "dhsk verify 'f e'" in said
    assert "--by 'f e' --out" in said


def test_the_most_different_samples_are_opened_by_no_command(run: Any) -> None:
    """Windows has no head."""
    run("--version")
    rows = np.random.default_rng(0).random((60, 3))
    np.save("a.npy", rows[:30])
    np.save("b.npy", rows[30:])
    out = run("compare", "a.npy", "b.npy", "--out", "d")[1]
    assert "or:     open d/witness.csv\n" in out


def test_extras_are_in_double_quotes() -> None:
    """Which every shell takes off, as zsh would look for files of that pattern."""
    with pytest.raises(InputError, match=r'pip install "dhsk\[s3\]"$'):
        optional_module("dhsk_lacks_this", "s3", "it needs more")
