"""The command `dhsk kernel`: its table and its pictures."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dhsk.__main__ import BAD_INPUT, DONE
from dhsk.commands.kernel_plot import plot_kernels
from dhsk.errors import InputError
from dhsk.kernels import HeatKernel, ParametrixKernel

STARTS = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF-"}


@pytest.fixture
def kernel(run: Any) -> Any:
    """Run `dhsk kernel` in an empty folder."""
    return partial(run, "kernel")


def test_table_holds_the_values(kernel: Any) -> None:
    """Values, time and levels are those of the kernels, and the last line says what to do next."""
    code, out, _ = kernel("--dim", 393, "--time-scale", 0.7)
    exact, parametrix = HeatKernel.at_scale(393, 0.7), ParametrixKernel.at_scale(393, 0.7)
    assert code == DONE
    row = next(line.split() for line in out.splitlines() if line.startswith("0.5 "))
    assert row[3:] == [f"{kernel.of_cosine(0.5):.6g}" for kernel in (exact, parametrix)]
    assert f"{exact.time:.6g}, time scale 0.7" in out
    assert f"{exact.n_levels} levels" in out
    assert out.splitlines()[-1].startswith("next:   dhsk kernel ... --plot FILE, or dhsk gram")


@pytest.mark.slow
@pytest.mark.parametrize("ending", STARTS)
def test_figure_is_drawn_for_several_dimensions(kernel: Any, ending: str) -> None:
    """The paper's Figure 1B in each format, the same bytes every time."""
    words = ("--dim", "100,200", "--dim", 300, "--plot")
    code, out, _ = kernel(*words, f"a.{ending}")
    assert code == DONE
    assert [f"sphere of dim {dim}," in out for dim in (100, 200, 300)] == [True] * 3
    assert f"output: a.{ending}" in out
    assert kernel(*words, f"b.{ending}")[0] == DONE
    drawn = Path(f"a.{ending}").read_bytes()
    assert drawn.startswith(STARTS[ending])
    assert drawn == Path(f"b.{ending}").read_bytes()


def test_svg_names_every_curve(kernel: Any) -> None:
    """Legend and axes are text that can be read in the file."""
    kernel("--dim", "100,300", "--plot", "f.svg")
    text = Path("f.svg").read_text()
    for words in ("exact, n = 100, t = 0.0461", "parametrix, n = 300, t = 0.019", "3π/4", "angle"):
        assert words in text


def test_absolute_time(kernel: Any) -> None:
    """`--time` is the diffusion time itself."""
    code, out, _ = kernel("--dim", 3, "--time", 0.25)
    assert code == DONE
    assert "0.25, time scale" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--dim", "ten"), "'ten' is not a list of whole numbers"),
        (("--dim", 1), "dim must be a whole number, at least 2, but it is 1"),
        (("--dim", 5, "--time", 1, "--time-scale", 1), "not both"),
        (("--dim", 5, "--time-scale", 0), "time_scale must be above 0"),
        (("--dim", 5, "--plot", "f.jpg"), "f.jpg must end in .png, .svg or .pdf"),
        ((), "Missing option '--dim'"),
    ],
)
def test_bad_words_end_in_a_sentence(kernel: Any, words: tuple[Any, ...], message: str) -> None:
    """Exit code 2 and what is wrong."""
    code, _, err = kernel(*words)
    assert code == BAD_INPUT
    assert message in err


def test_unknown_ending_is_refused_before_drawing(tmp_path: Path) -> None:
    """Nothing is written for a format that is not drawn."""
    pair = HeatKernel(3, 0.1), ParametrixKernel(0.1)
    with pytest.raises(InputError, match=r"\.jpg must end in"):
        plot_kernels(tmp_path / "f.jpg", [pair])
    assert not list(tmp_path.iterdir())
