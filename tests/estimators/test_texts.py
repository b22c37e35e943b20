"""Texts as samples in Python, as at the command line: cross-validated, predicted, or refused."""

from pathlib import Path

import numpy as np
import pytest

import dhsk

TEXTS = [f"{'wheel engine road' if n % 2 else 'orbit moon rocket'} word{n % 3}" for n in range(40)]
LABELS = ["cars" if n % 2 else "space" for n in range(40)]


def found(texts: object, **options: object) -> dhsk.CvResult:
    """A small cross-validation of texts."""
    return dhsk.cross_validate(texts, LABELS, time_scale=1.0, C=1.0, cv=2, **options)


def test_a_list_of_texts_is_samples_like_their_files(tmp_path: Path) -> None:
    """The words of a list are those of the same texts in a file, and so are the scores."""
    (tmp_path / "posts.csv").write_text("body\n" + "\n".join(TEXTS))
    in_file = found(f"{tmp_path / 'posts.csv'}:body")
    for texts in (TEXTS, np.array(TEXTS), np.array(TEXTS, dtype=object), tuple(TEXTS)):
        in_memory = found(texts)
        assert in_memory.samples.fingerprint == in_file.samples.fingerprint
        assert in_memory.best_score_ == in_file.best_score_ > 0.9


def test_a_model_of_words_predicts_texts(tmp_path: Path) -> None:
    """Loaded from its file too; new words are left out."""
    result = found(TEXTS, refit=True)
    dhsk.HeatSVC.of_model(result.model_).save(tmp_path / "model.dhsk")
    model = dhsk.HeatSVC.load(tmp_path / "model.dhsk")
    new = ["an engine on the road", "the moon in orbit of nothing known"]
    assert model.predict(new).tolist() == ["cars", "space"]
    assert model.decision_function(new).shape == (2,)
    counts = dhsk.open_samples(new, vectorizer=model.model_.vectorizer)
    (block,) = counts.blocks(10)
    assert model.predict(block).tolist() == ["cars", "space"]
    with pytest.raises(dhsk.InputError, match=r"one text, 'a space moon': give a list of texts"):
        model.predict("a space moon")
    with pytest.raises(
        dhsk.InputError, match=r"one text, 'the moon the moon .*\.\.\.': give a list"
    ):
        model.predict("the moon " * 5000)
    (tmp_path / "new.txt").write_text("a moon")
    with pytest.raises(dhsk.InputError, match="X is the name of a file"):
        model.predict(str(tmp_path / "new.txt"))


def test_models_of_numbers_do_not_print_texts() -> None:
    """Neither in a fit nor in a prediction; the message says what takes texts."""
    X = np.arange(80.0).reshape(40, 2) + 1
    fitted = dhsk.HeatSVC().fit(X, LABELS)
    for call in (lambda: fitted.predict(TEXTS), lambda: dhsk.HeatSVC().fit(TEXTS, LABELS)):
        with pytest.raises(dhsk.InputError, match=r"no vocabulary .*cross_validate takes") as said:
            call()
        assert "orbit" not in str(said.value)
    with pytest.raises(dhsk.InputError, match=r"row 1 .* is no string but of type int"):
        dhsk.open_samples(["one text", 2])
