"""Grammars of text formats: tables, Matrix Market, svmlight, sequences, JSON, labels, edges."""

import json
import re
from collections import Counter
from typing import Any, Final

import numpy as np
from grammar import (
    ANY,
    BROKEN,
    NUMBER,
    REFUSED,
    SOUND,
    Case,
    matrices,
    packed,
    rarely,
    seldom,
    values_of,
)
from hypothesis import strategies as st

import dhsk
from dhsk.samples import open_samples, read_labels

NAMES: Final = st.text(st.sampled_from("abcXYZ _-.é,;\"'µ"), min_size=1, max_size=8)


def dense(source: str, **options: Any) -> Any:
    """All values of samples, (N, dim)."""
    found = open_samples(source, **options)
    parts = [b if isinstance(b, np.ndarray) else b.toarray() for b in found.blocks(3)]
    return np.vstack(parts)


def _quoted(field: str, delimiter: str, always: bool) -> str:
    if (
        always
        or any(sign in field for sign in (delimiter, '"', "\n", "\r"))
        or field != field.strip()
    ):
        return '"' + field.replace('"', '""') + '"'
    return field


def _encoded(draw: Any, text: str) -> bytes:
    """Text with the line ends and the encoding of some system."""
    text = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n", "\r"])))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"]))
    return text.encode(encoding, "surrogatepass")


@st.composite
def tables(draw: Any) -> Case:
    """CSV and TSV files, with a header of words or without one."""
    rows = draw(matrices())
    end = draw(st.sampled_from([".csv", ".tsv"]))
    delimiter = draw(st.sampled_from([",", ",", ";", "\t"])) if end == ".csv" else "\t"
    width = len(rows[0])
    names = None
    if draw(st.booleans()):
        names = draw(st.lists(NAMES, min_size=width, max_size=width, unique_by=str.strip))
    answer = values_of(rows)
    lines = [[token for token, _ in row] for row in rows]
    if width == 1 and any(line == [""] for line in lines):
        answer = ANY  # a blank line, which does not count
    if rarely(draw, 30) and len(lines) > 1:
        place = draw(st.integers(0, len(lines) - 1))
        lines[place] = lines[place] + ["1"]
        answer = REFUSED
    if names is not None and (width == 1 and any(sign in names[0] for sign in ",;\t")):
        answer = ANY  # which of the two divides is not to be known
    if names is not None and not names[0].strip():
        answer = ANY  # perhaps the index of pandas
    head = [] if names is None else [names]
    always = draw(st.booleans())
    text = "".join(
        delimiter.join(_quoted(field, delimiter, always) for field in line) + "\n"
        for line in (*head, *lines)
    ) + draw(st.sampled_from(["", "", "\n\n"]))  # fmt: skip
    if draw(st.booleans()):
        text = text.rstrip("\n")
    name, content, answer = draw(packed(f"t{end}", _encoded(draw, text), answer))
    header = names is not None
    return Case({name: content}, name, answer, lambda source: dense(source, header=header))


@st.composite
def markets(draw: Any) -> Case:
    """Matrix Market files of coordinates."""
    kind = draw(st.sampled_from(["real", "real", "integer", "pattern", "double"]))
    n, dim = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    whole = st.integers(-9, 10**6).map(lambda k: (str(k), float(k)))
    token = {"integer": whole, "pattern": st.just(("", 1.0))}.get(kind, SOUND)
    X, right, lines = np.zeros((n, dim)), True, []
    for _ in range(draw(st.integers(0, 8))):
        i, j = draw(st.integers(1, n)), draw(st.integers(1, dim))
        text, value = draw(token)
        if rarely(draw, 40):
            wrong = [
                (f"{i} {j}", "7 7"),
                ("0", j),
                (i, dim + 1),
                (f"{i}.0", j),
                (i, f"{j}x"),
                (-1, j),
            ]
            i, j = draw(st.sampled_from(wrong))
            right = False
        elif rarely(draw, 40):
            text, _ = draw(BROKEN)
            if kind == "pattern" and not text:
                X[i - 1, j - 1] += 1
            else:
                right = False
        else:
            X[i - 1, j - 1] += value
        lines.append(
            draw(st.sampled_from(["{} {} {}", "{}\t{}  {}", " {} {} {} "])).format(i, j, text)
        )
    count = len(lines)
    if rarely(draw, 30):
        count += draw(st.sampled_from([-1, 1, 10**6, 10**12]))
        right = False
    head = draw(seldom(
        st.sampled_from(["%%MatrixMarket matrix coordinate {} general"] * 3
                        + ["%%matrixmarket MATRIX Coordinate {} General"]),
        st.sampled_from(["%%MatrixMarket matrix array {} general", "%MatrixMarket matrix {}", "",
                         "%%MatrixMarket matrix coordinate {} symmetric",
                         "%%MatrixMarket vector coordinate {} general"]), 30,
    )).format(kind)  # fmt: skip
    right = right and head.lower() == f"%%matrixmarket matrix coordinate {kind} general"
    comments = draw(st.sampled_from(["", "%\n", "% made by hand\n%\n", "\n"]))
    text = f"{head}\n{comments}{n} {dim} {count}\n" + "".join(f"{line}\n" for line in lines)
    answer = X if right and count >= 0 else REFUSED
    text = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))
    name, content, answer = draw(packed("m.mtx", text.encode(), answer))
    return Case({name: content}, name, answer, dense)


@st.composite
def svmlights(draw: Any) -> Case:
    """Svmlight files: labels, and pairs of an index and a value."""
    dim, base = draw(st.integers(1, 8)), draw(st.integers(0, 1))
    rows, lines, right = [], [], True
    for _ in range(draw(st.integers(1, 6))):
        columns = draw(st.lists(st.integers(0, dim - 1), unique=True).map(sorted))
        pairs = [(k, *draw(SOUND)) for k in columns]
        row = np.zeros(dim)
        for k, _, value in pairs:
            row[k] = value
        words = [f"{k + base}:{text}" for k, text, _ in pairs]
        if words and rarely(draw, 40):
            place = draw(st.integers(0, len(words) - 1))
            words[place] = draw(
                st.sampled_from(
                    [
                        "x",
                        "1",
                        ":1",
                        "1:",
                        "-1:2",
                        "1:2:3",
                        "1:x",
                        "a:1",
                        "0x1:1",
                        "1:1_0",
                        "99999999999999999999:1",
                        "1:0x1",
                    ]
                )
            )
            right = False
        elif len(words) > 1 and rarely(draw, 40):
            words, right = words[::-1], False
        label = draw(st.sampled_from(["1", "-1", "+1", "0", "3", "2.0"]))
        lines.append(
            " ".join([label, *words]) + draw(st.sampled_from(["", "", " # note 1:2", " "]))
        )
        rows.append(row)
        if rarely(draw, 9):
            lines.append(draw(st.sampled_from(["", "# a comment", "   "])))
    X = np.array(rows)
    touched = [int(w.split(":")[0]) for line in lines for w in line.split("#")[0].split()[1:]
               if re.fullmatch(r"\d{1,9}:.*", w)]  # fmt: skip
    if not right:
        answer: Any = REFUSED
    elif not touched:
        answer = REFUSED  # no feature
    elif base and min(touched) > 0:
        answer = X[:, : max(touched)]
    elif base == 0 and min(touched) == 0:
        answer = X[:, : max(touched) + 1]
    else:  # counted from 0, but without the first one: one less
        answer = X[:, 1 : max(touched) + 1]
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    text = end.join(lines) + draw(st.sampled_from(["", end]))
    name, content, answer = draw(packed("x.svm", text.encode(), answer))
    return Case({name: content}, name, answer, dense)


LETTERS: Final = st.text(st.sampled_from("ACGTacgtN*-"), min_size=1, max_size=30)


def substrings(strings: list[str], length: int) -> list[dict[str, int]]:
    """Substrings of each string, counted."""
    return [dict(Counter(s[k : k + length] for k in range(len(s) - length + 1))) for s in strings]


def counted(source: str, **options: Any) -> list[dict[str, int]]:
    """Counts of the terms of each text."""
    found = open_samples(source, **options)
    names = found.feature_names or ()
    rows = [row for block in found.blocks(2) for row in block.toarray()]
    return [{names[k]: int(row[k]) for k in np.flatnonzero(row)} for row in rows]


@st.composite
def sequences(draw: Any) -> Case:
    """FASTA and FASTQ files and lines, whose substrings of two letters are counted."""
    form = draw(st.sampled_from(["fasta", "fastq", "txt"]))
    strings = draw(st.lists(LETTERS, min_size=1, max_size=5))
    right, parts = True, []
    for number, string in enumerate(strings):
        width = draw(st.integers(1, 40))
        wrapped = [string[k : k + width] for k in range(0, len(string), width)]
        if form == "txt":
            parts.append(f"{string}\n")
        elif form == "fasta":
            if rarely(draw, 9):
                parts.append("; a comment\n")
            parts.append(f">r{number} kind=a\n" + "".join(f"{w}\n" for w in wrapped))
        else:
            quality = draw(
                st.text(st.sampled_from("!@+>I5;"), min_size=len(string), max_size=len(string))
            )
            parts.append(f"@r{number}\n{string}\n+\n{quality}\n")
    spoilt = draw(st.integers(0, 25)) - 25 // 2
    if spoilt == 0:
        parts[-1] = {"fasta": ">empty\n", "fastq": "@r\nACGT\n+\nII\n", "txt": "\n"}[form]
        right = False
    elif spoilt == 1 and form != "txt":
        parts.insert(0, "ACGT\n")
        right = False
    elif spoilt == 2 and form == "fasta":
        parts[-1] = parts[-1].rstrip("\n") + ">glued\nAC\n"
        right = False
    text = "".join(parts)
    if right and draw(st.booleans()):
        text = text.rstrip("\n")
    answer = substrings(strings, 2) if right else REFUSED
    if right and not any(answer):
        answer = REFUSED
    spectrum = dhsk.Spectrum(2)
    content = text.replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))).encode()
    name, content, answer = draw(packed(f"s.{form}", content, answer))
    return Case({name: content}, name, answer, lambda source: counted(source, vectorizer=spectrum))


TEXTS: Final = st.text(st.sampled_from("ab Zé9_.,'\"\\\n\t\u2028\U0001f600-"), max_size=25)


def words(texts: list[str]) -> list[dict[str, int]]:
    """Words of each text, counted as scikit-learn does."""
    return [dict(Counter(re.findall(r"(?u)\b\w\w+\b", text.lower()))) for text in texts]


@st.composite
def json_lines(draw: Any) -> Case:
    """Lines of JSON with a text each."""
    lines, texts, right = [], [], True
    for number in range(draw(st.integers(1, 6))):
        text = draw(TEXTS)
        texts.append(text)
        record: Any = {"id": number, "text": text, "label": "a"}
        line = json.dumps(record, ensure_ascii=draw(st.booleans()))
        spoilt = draw(st.integers(0, 400)) - 200
        if 0 <= spoilt < 8:
            right = False
            line = [
                json.dumps({"text": None}), json.dumps({"text": 3}), json.dumps({"other": "x"}),
                "[1, 2]", '"text"', line[:-1], "{" * 2000, json.dumps({"text": "a\0b"}),
            ][spoilt]  # fmt: skip
        lines.append(line)
        if rarely(draw, 9):
            lines.append(draw(st.sampled_from(["", "  "])))
    answer: Any = words(texts) if right else REFUSED
    if right and not any(answer):
        answer = REFUSED
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    name, content, answer = draw(packed("t.jsonl", (end.join(lines) + end).encode(), answer))
    return Case({name: content}, name, answer, counted)


LABELS: Final = seldom(
    st.one_of(
        st.sampled_from(["a", "b", "c d", "é", "1_0", "10", "x;y"]),
        st.integers(-3, 3).map(str),
        st.sampled_from(["1.0", "2", "1e0", "9007199254740993", "9007199254740992"]),
    ),
    st.sampled_from(["", " ", "1.5", "nan", "inf", "9" * 5000, "\u2028x", "1e300"]), 25,
)  # fmt: skip


def _classes(labels: list[str]) -> Any:
    """What labels in text mean: whole numbers, if all are numbers, or text; or `REFUSED`."""
    labels = [label.strip() for label in labels]
    if not all(labels):
        return REFUSED
    try:
        numbers = [float(label) for label in labels if "_" not in label]
    except ValueError:
        numbers = []
    if len(numbers) < len(labels):
        return labels
    if not np.isfinite(numbers).all():
        return REFUSED
    if any(abs(x) >= 2.0**53 for x in numbers):
        return labels  # as text, so that neighbours stay apart
    return REFUSED if any(x != int(x) for x in numbers) else [int(x) for x in numbers]


@st.composite
def labels(draw: Any) -> Case:
    """Labels in text: one a line, or a column of a table."""
    given = draw(st.lists(LABELS, min_size=2, max_size=8))
    answer = _classes(given)
    count = len(given)
    if answer is not REFUSED and len(set(answer)) < 2:
        answer = REFUSED
    key = ""
    if draw(st.booleans()):
        name, text = "y.txt", "\n".join(given) + draw(st.sampled_from(["", "\n"]))
        if not given[-1]:
            answer = REFUSED
    else:
        name, key = draw(st.sampled_from([("y.csv", ":kind"), ("y.tsv", ":kind")]))
        sign = "," if name == "y.csv" else "\t"
        rows = [f"id{sign}kind"] + [
            f"s{k}{sign}{_quoted(v, sign, True)}" for k, v in enumerate(given)
        ]
        text = "\n".join(rows) + "\n"
    name, content, answer = draw(packed(name, _encoded(draw, text), answer))
    return Case(
        {name: content}, f"{name}{key}", answer, lambda source: read_labels(source, count).tolist()
    )


_NODES: Final = [
    st.integers(0, 12).map(str), st.sampled_from(["a", "b", "é", "x1"]),
    st.sampled_from(["9" * 5000, "1", "007", "7"]),
]  # fmt: skip


@st.composite
def edges(draw: Any) -> Case:
    """Edge lists."""
    width, sign = draw(st.integers(2, 3)), draw(st.sampled_from([" ", "\t", ",", "  "]))
    node = draw(st.sampled_from(_NODES))
    found: dict[tuple[str, str], float] = {}
    lines, right = [], True
    for _ in range(draw(st.integers(1, 8))):
        a, b = draw(node), draw(node)
        text, value = ("", 1.0) if width == 2 else draw(NUMBER)
        if not text.strip() or " " in text:
            text = text if width == 2 else "x"  # blanks divide
        key = (min(a, b), max(a, b))
        if value is None or found.setdefault(key, value) != value or not np.isfinite(value):
            right = False
        line = sign.join([a, b, *([] if width == 2 else [text])])
        if lines and rarely(draw, 60):
            line, right = draw(st.sampled_from([f"{line}{sign}9", a, f"{a}{sign}"])), False
        lines.append(line)
        if rarely(draw, 9):
            lines.append(draw(st.sampled_from(["", "# note", "   "])))
    if rarely(draw, 4):
        lines.insert(0, sign.join(["source", "target", "weight"][:width]))
    answer: Any = REFUSED
    if right:
        answer = {frozenset(pair): weight for pair, weight in found.items()}
    name, content, answer = draw(packed("e.txt", _encoded(draw, "\n".join(lines) + "\n"), answer))

    def read(source: str) -> Any:
        matrix, nodes = dhsk.read_edges(source)
        X = matrix.tocoo()
        assert nodes is not None
        np.testing.assert_array_equal(matrix.toarray(), matrix.toarray().T)
        entries = zip(*X.coords, X.data.tolist(), strict=True)
        return {frozenset((nodes[i], nodes[j])): weight for i, j, weight in entries}

    return Case({name: content}, name, answer, read)
