"""Help of commands: short, in groups, and all of it if asked for."""

import re
from dataclasses import fields
from inspect import signature
from typing import Any

import pytest
from click.testing import CliRunner

import dhsk
from dhsk.commands.cli import COMMANDS, OVERVIEW, commands
from dhsk.commands.cv_options import FINAL, KERNELS_OF_GRID, PASSED_ON, SETTINGS
from dhsk.commands.manner import MOST_LINES
from dhsk.commands.table import DATA, JUDGE, RUN, TRY, key_of
from dhsk.results.asked import Fitting, Output, Refit, StratifiedFolds
from dhsk.results.low_rank import LowRank


def shown(command: str, option: str = "--help", width: int = 80) -> str:
    """What a help says."""
    return (
        CliRunner()
        .invoke(commands, [command, option], prog_name="dhsk", terminal_width=width)
        .output
    )


@pytest.mark.parametrize("command", OVERVIEW)
def test_the_help_of_a_command_is_short(command: str) -> None:
    """On a terminal of 80 columns it fits a screen."""
    assert len(shown(command).splitlines()) <= MOST_LINES


def test_the_help_of_cv_has_the_ten_most_used_options_in_groups() -> None:
    """And says how to see the others."""
    said = shown("cv")
    places = [said.index(f"\n{group}:\n") for group in (DATA, TRY, JUDGE, RUN)]
    assert places == sorted(places)
    common = [one for one in COMMANDS["cv"].loaded.params if getattr(one, "common", False)]
    assert {key_of(one) for one in common} == {
        "labels", "out", "kernel", "time-scale", "C", "rank", "folds", "model", "cluster",
        "memory", "config",
    }  # fmt: skip
    assert all(f"\n  --{key_of(one)} " in said for one in common)
    assert "--parametrix-scale" not in said
    assert "dhsk cv --help-all shows all" in said


@pytest.mark.parametrize("command", OVERVIEW)
def test_the_long_help_has_every_option(command: str) -> None:
    """With the groups of the short one."""
    said = shown(command, "--help-all")
    options: list[Any] = [one for one in COMMANDS[command].loaded.params if one.opts]
    words = [word for one in options for word in one.opts if word.startswith("--")]
    assert set(words) <= set(re.findall(r"--[\w-]+", said))
    assert "shows all" not in said


def test_every_option_of_a_grid_is_used() -> None:
    """Each is a parameter of `cross_validate`, a field of what that takes, or the command's own."""
    own = {"names", "parametrix_scale", "sigma", "groups", "in_order", "model", "test_labels"}
    own |= {"overwrite", "class_weight"}
    kinds = (StratifiedFolds, Fitting, Refit, Output, LowRank)
    taken = own | set(PASSED_ON) | {"time_scale"} | {f.name for kind in kinds for f in fields(kind)}
    rows = (*KERNELS_OF_GRID, *SETTINGS, *FINAL)
    assert {row.name for row in rows} <= taken
    assert set(PASSED_ON) <= set(signature(dhsk.cross_validate).parameters)
