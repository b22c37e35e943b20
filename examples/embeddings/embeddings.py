"""Embeddings of texts on the whole sphere: vectors with entries of both signs.

Run `python embeddings.py FOLDER PICTURE.png`. FOLDER holds a folder for each class, one text a
file. The embedding is latent semantic analysis, which needs no network.
"""

import sys

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_files
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

import dhsk

DIM, SCALES = 100, [0.3, 0.5, 0.7, 1.0, 1.4, 2.0]


def main(folder: str, picture: str) -> None:
    """Tune on 70 % of the texts, test on the others, and draw scores against the time scale."""
    files = load_files(folder, encoding="utf-8", decode_error="replace")
    texts, new_texts, y, y_new = train_test_split(
        files.data, files.target, test_size=0.3, stratify=files.target, random_state=0
    )
    embed = make_pipeline(TfidfVectorizer(min_df=2), TruncatedSVD(DIM, random_state=0))
    X, X_new = embed.fit_transform(texts), embed.transform(new_texts)
    print(f"{len(X)} texts to train, {DIM} numbers each, {np.mean(X < 0):.0%} of them negative")

    result = dhsk.cross_validate(X, y, time_scale=SCALES, C="auto", sphere_map="projective")
    best = result.best_
    print(f"best: s = {best['time_scale']}, C = {best['C']:.4g}: {best['mean']:.4f} over 5 folds")
    heat = dhsk.HeatSVC(C=best["C"], time_scale=best["time_scale"], sphere_map="projective")
    peers = {"LinearSVC": LinearSVC(), "SVC, Gaussian kernel": SVC(C=10.0)}
    for name, model in {"HeatSVC": heat, **peers}.items():
        print(f"new texts, {name:20} {model.fit(X, y).score(X_new, y_new):.4f}")

    cells = result.to_frame().groupby(["time_scale", "C"]).score.agg(["mean", "std"])
    tops = cells.loc[cells["mean"].groupby("time_scale").idxmax()]
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    axes.errorbar(SCALES, tops["mean"], tops["std"], marker="o", capsize=3)
    axes.set(xlabel="time scale s", ylabel="accuracy, mean ± std over 5 folds", xscale="log")
    axes.minorticks_off()
    axes.set_xticks(SCALES, [f"{s:g}" for s in SCALES])
    figure.savefig(picture, dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
