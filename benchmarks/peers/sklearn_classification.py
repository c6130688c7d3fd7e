"""TF-IDF and logistic regression of scikit-learn, run by benchmarks/classification.py.

Words and pairs of words, or pieces of one to four characters, and how much it is regularised: what is best on the
validation table.
"""

from __future__ import annotations

from measure_classification import main, read_table, share_right
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

FEATURES = (("word", (1, 2)), ("char", (1, 4)))
STRENGTHS = (3.0, 30.0)  # the larger, the less it is regularised


def answer(request: dict) -> dict:
    texts, labels = read_table(request["train"])
    validation, expected = read_table(request["validation"])
    test, _ = read_table(request["test"])
    best: tuple[float, list[str], str] = (-1.0, [], "")
    for analyzer, span in FEATURES:
        vectorizer = TfidfVectorizer(analyzer=analyzer, ngram_range=span, sublinear_tf=True, min_df=2)
        rows = vectorizer.fit_transform(texts)
        for strength in STRENGTHS:
            model = LogisticRegression(C=strength, max_iter=300).fit(rows, labels)
            right = share_right(model.predict(vectorizer.transform(validation)).tolist(), expected)
            if right > best[0]:
                best = right, model.predict(vectorizer.transform(test)).tolist(), f"{analyzer} {span}, C {strength:g}"
    return {"labels": best[1], "validation": best[0], "chosen": best[2]}


if __name__ == "__main__":
    main(answer)
