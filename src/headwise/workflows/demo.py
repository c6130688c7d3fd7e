"""`headwise demo`: everything in one command, on a generated corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.config.recipe import load_recipe
from headwise.config.schema import Recipe
from headwise.evaluation.metrics import Score
from headwise.text.phrasebook import Phrasebook, PhrasePair, write_corpus
from headwise.training.loop import Hook
from headwise.workflows.evaluate import evaluate
from headwise.workflows.look import look_inside
from headwise.workflows.run_directory import RunDirectory
from headwise.workflows.train import Finished, train
from headwise.workflows.translate import open_translator

TRAINING_PAIRS, HELD_OUT_PAIRS, SHOWN = 60_000, 500, 5
# Not the seed of the corpus: gives sentences that are in none of its files, not even the held-out ones.
UNSEEN_SEED = 2


@dataclass(frozen=True)
class Shown:
    """A sentence that the model has never seen: the grammar's pair, and the model's translation."""

    pair: PhrasePair
    translation: str


@dataclass(frozen=True)
class Demo:
    """The results of the demo."""

    corpus: Path
    finished: Finished
    scores: list[Score]
    shown: list[Shown]
    pictures: list[Path]


def demo(
    output: Path,
    *,
    overrides: Sequence[str] = (),
    hooks: Sequence[Hook] = (),
    tell: Callable[[str], None] = lambda line: None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Demo | Finished:
    """Writes text, trains, evaluates, translates and draws; returns only a Finished if the run was interrupted."""
    corpus = output / "corpus"
    tell(f"writing {TRAINING_PAIRS:,} English-Chinese sentence pairs to {corpus}")
    files = write_corpus(corpus, train=TRAINING_PAIRS, held_out=HELD_OUT_PAIRS)
    loaded = load_recipe("demo", overrides, data=corpus)
    finished = trained_once(loaded, output, hooks=hooks, tell=tell, progress=progress)
    if finished.reason.startswith("SIG"):
        return finished
    model = str(finished.model)
    tell(f"translating the {HELD_OUT_PAIRS} held-out test sentences")
    evaluated: Any = evaluate(model, source=str(files["test.en"]), reference=[str(files["test.zh"])])
    scores = [score for score in evaluated.scores if score.name.lower() != "ter"]
    pairs = _unseen(SHOWN)
    translations = open_translator(model).translate([pair.english for pair in pairs])
    shown = [Shown(pair, translation.text) for pair, translation in zip(pairs, translations, strict=True)]
    return Demo(corpus, finished, scores, shown, _draw(output, model, pairs[0].english))


def trained_once(loaded: tuple[Recipe, Path], output: Path, *, tell: Callable[[str], None], **options: Any) -> Finished:
    """Trains a recipe, whose paths are relative to its base, in OUTPUT/run, unless a demo before has finished that."""
    recipe, base = loaded
    run = RunDirectory(output / "run")
    if run.finished.is_file():
        tell(f"{run.path} is already trained; delete {output} to start again")
        return Finished.of(run)
    return train(recipe, base, run.path, tell=tell, **options)


def _unseen(count: int) -> list[PhrasePair]:
    """Returns held-out sentences, none of them too long to display."""
    pairs = [p for p in Phrasebook(UNSEEN_SEED).pairs(20 * count, held_out=True) if len(p.english.split()) <= 12]
    return pairs[:count]


def _draw(output: Path, model: str, text: str) -> list[Path]:
    look = look_inside(model, text)
    pictures = [output / "attention.html", output / "attention.svg"]
    look.save(pictures[0])
    look.save(pictures[1], what="cross", layer=min(3, len(look.attention["cross"])), merge_pieces=True)
    return pictures
