"""What strings of letters seem to be."""

from pathlib import Path
from typing import Any

import pytest

from dhsk.samples.molecules import letters_in
from dhsk.samples.paths import Origin
from dhsk.samples.readers import describe

DNA, DNA_OPTIONS = "ACGTTGCA" * 20, " --spectrum 6 --letters dna"
CASES = {
    DNA: ("DNA", DNA_OPTIONS),
    DNA.replace("T", "U"): ("RNA", DNA_OPTIONS),
    DNA.lower(): ("DNA", DNA_OPTIONS),
    DNA + DNA.lower(): ("DNA, 50% in lower case; --letters dna takes both", DNA_OPTIONS),
    DNA + "N" * 40: ("DNA, 20.00% other letters; --letters dna", DNA_OPTIONS),
    "MKVLAWGHEDRSTPQNYFIC" * 8: ("amino acids", " --spectrum 1-3"),
    "a line of any text, of many words " * 9: ("17 different", " --spectrum 6"),
    "AAAA": ("DNA", DNA_OPTIONS),
    "": ("0 different", " --spectrum 6"),
}


@pytest.mark.parametrize("text", CASES)
def test_letters_are_told(text: str) -> None:
    """With the options that suit them."""
    words, options = letters_in(text)
    assert words.startswith(CASES[text][0])
    assert options == CASES[text][1]


def test_keys_of_headers_are_labels_and_groups(tmp_path: Path) -> None:
    """Of few values; a column of a table is told by its letters too."""
    path = tmp_path / "x.fasta"
    records = [f">r{k} class={'uv'[k % 2]} patient=p{k % 4} n={k}\n{DNA}" for k in range(20)]
    path.write_text("\n".join(records))
    found: Any = describe(Origin.of(path))
    assert dict(found.rows) == {"letters": "DNA", "keys": "class, patient"}
    assert found.following[0] == (
        f"dhsk cv {path} --labels {path}:class --groups {path}:patient --spectrum 6 --letters dna "
        "--out found"
    )
    rows = "\n".join(f"s{k},{DNA},{'uv'[k % 2]}" for k in range(20))
    (tmp_path / "t.csv").write_text(f"id,sequence,class\n{rows}\n")
    found = describe(Origin.of(tmp_path / "t.csv"))
    assert ("letters", "DNA") in found.rows
    assert "t.csv:sequence --labels" in found.following[0]
    assert found.following[0].endswith(" --spectrum 6 --letters dna --out found")
