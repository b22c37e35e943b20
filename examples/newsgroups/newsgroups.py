"""20 Newsgroups at full vocabulary: the heat kernel beside tf-idf and a linear SVM.

Run `python newsgroups.py 20news_bydate.tsv.gz PICTURE.png`.
"""

import gzip
import sys
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.metrics import recall_score
from sklearn.svm import LinearSVC

import dhsk


def tuned(X: Any, y: Any, sphere_map: Any) -> dhsk.HeatSVC:
    """Exact SVM with the time and C that are best on at most 3000 random samples."""
    some = np.random.default_rng(0).permutation(len(y))[:3000]
    best = dhsk.cross_validate(X[some], y[some], time_scale="auto", sphere_map=sphere_map).best_
    return dhsk.HeatSVC(C=best["C"], time_scale=best["time_scale"], sphere_map=sphere_map)


def main(file: str, picture: str) -> None:
    """Train on the earlier posts, test on the later ones, and draw the recall of each group."""
    with gzip.open(file, "rt", encoding="utf-8", newline="\n") as table:
        posts = [line.rstrip("\n").split("\t", 3) for line in table]
    splits, groups, _, texts = np.array(posts, dtype=object).T
    train, test = splits == "train", splits == "test"
    y, y_test = groups[train].astype(str), groups[test].astype(str)
    words, weights = CountVectorizer(), TfidfTransformer(sublinear_tf=True)
    counts, new_counts = words.fit_transform(texts[train]), words.transform(texts[test])
    tfidf, new_tfidf = weights.fit_transform(counts), weights.transform(new_counts)
    print(f"{len(y)} posts to train, {len(y_test)} to test, {counts.shape[1]} words")

    low = dhsk.NystromSVC(3000, C=1.0, time_scale=1.0, sphere_map="projective", random_state=0)
    figure, axes = plt.subplots(figsize=(8, 8), layout="constrained")
    for number, (name, model, X, X_new) in enumerate([
        ("tf-idf, LinearSVC", LinearSVC(), tfidf, new_tfidf),
        ("tf-idf, HeatSVC", tuned(tfidf, y, "projective"), tfidf, new_tfidf),
        ("counts, HeatSVC", tuned(counts, y, "hyperspherical"), counts, new_counts),
        ("tf-idf, NystromSVC", low, tfidf, new_tfidf),
    ]):  # fmt: skip
        said = model.fit(X, y).predict(X_new)
        print(f"{name:18} {np.mean(said == y_test):.4f}  {model}")
        recall = recall_score(y_test, said, average=None)
        axes.barh(np.arange(len(recall)) + 0.2 * (1.5 - number), recall, 0.19, label=name)
    print(f"its features leave out {model.trace_error_:.0%} of that kernel")
    axes.set(xlabel="recall on test posts (part of a group's posts that is found)", ylabel="group")
    axes.set_yticks(range(len(recall)), np.unique(y_test))
    figure.legend(loc="outside upper center", ncols=4)
    figure.savefig(picture, dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
