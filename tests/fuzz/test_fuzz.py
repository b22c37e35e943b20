"""Draws of bad input: each is one sentence and an exit code, or the work is done."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow(seconds=60)
@pytest.mark.timeout(1200)
def test_cases_end_in_a_sentence_or_in_their_result() -> None:
    """See fuzz.py, which prints the cases that do not, and draws others with another --seed."""
    program = Path(__file__).with_name("fuzz.py")
    done = subprocess.run(
        [sys.executable, str(program), "--seed", "13", "--cases", "300"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "300 cases of seed 13: 0 faults" in done.stdout) == (0, True), (
        done.stdout + done.stderr
    )
