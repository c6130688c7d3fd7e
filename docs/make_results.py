"""Fills docs/results.md: the figures from the cards of the shipped models, the outputs from the models themselves.

The classifiers' table is made from benchmarks/results/classification.json.

    python docs/make_results.py

No number on that page is typed by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.workflows.models import ShippedModel, ShippedScore, shipped_models

PAGE = Path(__file__).with_name("results.md")
CLASSIFIERS = Path(__file__).parents[1] / "benchmarks" / "results" / "classification.json"
TOOLS = ("Headwise", "Hugging Face Trainer", "TF-IDF + logistic regression", "fastText")
NONE = "No model ships with this version."
# Of the kind that each model is for, and last one that is not.
SENTENCES = {
    "multi30k-en-de": (
        "A man is riding a bicycle.",
        "Two children are playing with a ball in the park.",
        "An old woman in a blue coat is waiting for the train.",
        "The government will raise taxes on electricity next year.",
    ),
    "multi30k-de-en": (
        "Ein Mann fährt Fahrrad.",
        "Zwei Kinder spielen im Park mit einem Ball.",
        "Ein Hund springt über einen umgestürzten Baum.",
        "Die Regierung erhöht nächstes Jahr die Steuern auf Strom.",
    ),
    "tatoeba-zh-en": ("我喜欢音乐。", "你明天有空吗？", "他昨天没有去学校。", "政府明年将提高电力税。"),
    "tatoeba-en-zh": (
        "I like music.",
        "Are you free tomorrow?",
        "He did not go to school yesterday.",
        "The government will raise taxes on electricity next year.",
    ),
}


def scores_table(models: Iterable[ShippedModel]) -> str:
    head = (
        "model", "test set", "BLEU", "chrF2", "BLEU, int8", "BLEU on validation", "parameters", "updates", "minutes",
        "tokens/s",
    )  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for model in _translators(models):
        card = open_bundle(model.path, verify=False).card
        test = next(score.test for score in model.scores if score.test != "val")
        cells = [model.name, test, *_cells(model, test), *_training(card)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else NONE


def other_scores_table(models: Iterable[ShippedModel]) -> str:
    """Models of other tasks have other metrics, so a row has the figures of one test set with their names."""
    head = ("model", "task", "test set", "float16", "int8", "parameters", "updates", "minutes", "targets/s")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for model in models:
        card = open_bundle(model.path, verify=False).card
        for test in dict.fromkeys(score.test for score in model.scores):
            forms = [
                [f"{s.metric} {s.value:.2f}" for s in model.scores if (s.test, s.engine) == (test, engine)]
                for engine in ("float16", "int8")
            ]
            cells = [model.name, model.task, test, *(", ".join(form) or "–" for form in forms), *_training(card)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _translators(models: Iterable[ShippedModel]) -> list[ShippedModel]:
    return [model for model in models if model.task == "translate"]


def _cells(model: ShippedModel, test: str) -> list[str]:
    wanted = (
        (test, "BLEU", "float16"),
        (test, "chrF2", "float16"),
        (test, "BLEU", "int8"),
        ("val", "BLEU", "float16"),
    )
    return [_value(model, *which) for which in wanted]


def _value(model: ShippedModel, test: str, metric: str, engine: str) -> str:
    found = [s for s in model.scores if (s.test, s.metric, s.engine) == (test, metric, engine)]
    return f"{found[0].value:.2f}" if found else "–"


def _training(card: dict[str, Any]) -> list[str]:
    training = card["training"]
    speed = training["tokens_a_second"]
    return [
        f"{card['parameters']:,}",
        f"{training['updates']:,}",
        f"{training['minutes']:g}",
        "–" if speed is None else f"{speed:,}",
    ]


def signatures(models: Iterable[ShippedModel]) -> str:
    seen: dict[tuple[str, str], list[str]] = {}
    for model in models:
        for score in model.scores:
            names = seen.setdefault((score.metric, score.signature), [])
            name = f"into {model.target}" if model.task == "translate" else f"of {model.name}"
            if name not in names:
                names.append(name)
    lines = [
        f"- {metric} {', '.join(names).replace(', into', ',')}: `{signature}`"
        for (metric, signature), names in seen.items()
    ]
    return "\n".join(lines) or NONE


def stored_table(models: Iterable[ShippedModel]) -> str:
    lines = [
        "| model | size, MB | validation sentences | the same with float16 weights | the same with int8 |",
        "|---|---|---|---|---|",
    ]
    for model in models:
        stored = open_bundle(model.path, verify=False).card["stored"]
        kept = ("sentences", "same_float16", "same_int8")
        figures = [f"{stored[name]:,}" if name in stored else "–" for name in kept]
        lines.append(f"| {model.name} | {model.size / 1e6:.2f} | {' | '.join(figures)} |")
    return "\n".join(lines) if len(lines) > 2 else NONE


def outputs(models: Iterable[ShippedModel]) -> str:
    from headwise.workflows.translate import open_translator

    parts = []
    for model in _translators(models):
        sentences = SENTENCES[model.name]
        translations = open_translator(model.path, scores="none").translate(sentences)
        rows = [f"| {a} | {b.text} |" for a, b in zip(sentences, translations, strict=True)]
        parts.append("\n".join([f"| {model.source} | {model.target} |", "|---|---|", *rows]))
    return "\n\n".join(parts) or NONE


def classifiers_table(file: Path = CLASSIFIERS) -> str:
    """Accuracy on test tables, in per cent: a row per table, a column per tool; macro-F1 and int8 of ours."""
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    found = {tuple(row["what"].split(", test ")): row for row in rows}
    lines = [f"| classifier | {' | '.join(TOOLS)} | our macro-F1 | int8 has our label |", "|---" * 7 + "|"]
    for title in dict.fromkeys(title for title, _ in found):
        accuracy = found[title, "accuracy"]
        tools = {"Headwise": accuracy["ours"], **accuracy["peers"]}
        cells = [f"{tools[tool]:.1f}" if tool in tools else "–" for tool in TOOLS]
        cells += [f"{row['ours']:.1f}" for (name, what), row in found.items() if name == title and what != "accuracy"]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def fill(page: str, parts: dict[str, str]) -> str:
    for name, text in parts.items():
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        pattern = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
        assert pattern.search(page), f"{PAGE} has no place for {name}"
        page = pattern.sub(lambda _, t=text, s=start, e=end: f"{s}\n\n{t}\n\n{e}", page)
    return page


def figures(models: list[ShippedModel]) -> dict[str, str]:
    """What comes from the cards, and so is the same on every machine."""
    scores, others = scores_table(models), [model for model in models if model.task != "translate"]
    if others:
        scores += f"\n\n{other_scores_table(others)}"
    return {"scores": scores, "signatures": signatures(models), "stored": stored_table(models)}


def measured() -> dict[str, str]:
    """What comes from the stored results of benchmarks."""
    return {"classifiers": classifiers_table()}


def score_lines(scores: Iterable[ShippedScore]) -> list[str]:
    return [f"{score.test} {score.engine} {score.metric} {score.value:.2f}" for score in scores]


def main() -> None:
    models = shipped_models()
    page = fill(PAGE.read_text(encoding="utf-8"), {**figures(models), **measured(), "outputs": outputs(models)})
    PAGE.write_text(page, encoding="utf-8")
    for model in models:
        print(model.name, *score_lines(model.scores), sep="\n    ")


if __name__ == "__main__":
    main()
