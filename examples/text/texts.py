"""Text files to a tuned classifier: `CountVectorizer` and `HeatSVC` in a scikit-learn pipeline.

Run `python texts.py FOLDER PICTURE.png`. FOLDER holds a folder for each class, one text a file.
"""

import sys

from matplotlib import pyplot as plt
from sklearn.datasets import load_files
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import dhsk


def main(folder: str, picture: str) -> None:
    """Tune on 70 % of the texts, test on the others, and draw what is taken for what."""
    files = load_files(folder, encoding="utf-8", decode_error="replace")
    names = [files.target_names[label] for label in files.target]
    texts, new_texts, y, y_new = train_test_split(
        files.data, names, test_size=0.3, stratify=names, random_state=0
    )
    counts = CountVectorizer(min_df=2).fit_transform(texts)
    print(f"{counts.shape[0]} texts to train, {counts.shape[1]} words")

    best = dhsk.cross_validate(counts, y, time_scale="auto").best_
    print(f"best: s = {best['time_scale']}, C = {best['C']:.4g}: {best['mean']:.4f} over 5 folds")

    svc = dhsk.HeatSVC(C=best["C"], time_scale=best["time_scale"])
    model = make_pipeline(CountVectorizer(min_df=2), svc).fit(texts, y)
    print(f"new texts, counts and HeatSVC:   {model.score(new_texts, y_new):.4f}")
    peer = make_pipeline(TfidfVectorizer(min_df=2, sublinear_tf=True), LinearSVC()).fit(texts, y)
    print(f"new texts, tf-idf and LinearSVC: {peer.score(new_texts, y_new):.4f}")

    figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
    said = model.predict(new_texts)
    ConfusionMatrixDisplay.from_predictions(
        y_new, said, ax=axes, xticks_rotation=45, cmap="Blues", colorbar=False
    )
    axes.set(xlabel="predicted class of new texts", ylabel="true class", title="number of texts")
    figure.savefig(picture, dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
