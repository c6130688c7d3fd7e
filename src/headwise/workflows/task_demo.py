"""`headwise demo --task …`: the whole way of another task, on data that is generated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from headwise.config.recipe import load_recipe
from headwise.errors import UsageError
from headwise.training.loop import Hook
from headwise.workflows.demo import trained_once
from headwise.workflows.evaluate import evaluate
from headwise.workflows.load import load
from headwise.workflows.train import Finished

SHOWN = 5


@dataclass(frozen=True)
class Shown:
    """An item that the model has never seen, its answer, and the right one if there is one."""

    item: str
    answer: str
    truth: str | None = None


@dataclass(frozen=True)
class TaskDemo:
    """The results of the demo of a task."""

    corpus: Path
    finished: Finished
    scores: list[str]  # lines
    shown: list[Shown]
    next_steps: list[str]  # commands


class Lesson(ABC):
    """What the demo of one task does: it writes data, and uses the model on data that training did not see."""

    recipe: str
    train: int
    held_out: int

    @property
    @abstractmethod
    def about(self) -> str:
        """What is written, in a few words."""

    @abstractmethod
    def write(self, corpus: Path) -> dict[str, Any]:
        """Writes the data; returns the options of `evaluate` for the held-out part."""

    @abstractmethod
    def show(self, model: Path, corpus: Path) -> list[Shown]:
        """Uses the model."""

    @abstractmethod
    def next_steps(self, model: Path, corpus: Path) -> list[str]:
        """Commands for the model, to copy."""


class Messages(Lesson):
    """Classification: what is a message to a shop about?"""

    recipe, train, held_out = "demo-classify", 8_000, 600

    @property
    def about(self) -> str:
        return f"{self.train:,} messages to a shop, with what each is about,"

    def write(self, corpus: Path) -> dict[str, Any]:
        from headwise.text.shop_messages import write_messages

        return {"table": str(write_messages(corpus, train=self.train, held_out=self.held_out)["test"])}

    def show(self, model: Path, corpus: Path) -> list[Shown]:
        found = _rows(corpus / "test.csv", SHOWN)
        answers = load(model).classify([text for text, _ in found])
        return [Shown(text, one.label, label) for (text, label), one in zip(found, answers, strict=True)]

    def next_steps(self, model: Path, corpus: Path) -> list[str]:
        text = "The payment went through, but the lamp is broken."
        return [
            f'headwise classify --model {model} "{text}"',
            f'headwise look --model {model} "{text}" --output attention.html',
        ]


class Melodies(Lesson):
    """Transcription: which notes does a melody have?"""

    recipe, train, held_out = "demo-transcribe", 4_000, 200

    @property
    def about(self) -> str:
        return f"{self.train:,} melodies, with the names of their notes,"

    def write(self, corpus: Path) -> dict[str, Any]:
        from headwise.sound.melodies import write_melodies

        return {"sounds": str(write_melodies(corpus, train=self.train, held_out=self.held_out)["test"])}

    def show(self, model: Path, corpus: Path) -> list[Shown]:
        found = [(str(corpus / file), text) for file, text in _rows(corpus / "test.csv", SHOWN)]
        answers = load(model).transcribe([file for file, _ in found])
        return [Shown(file, one.text, text) for (file, text), one in zip(found, answers, strict=True)]

    def next_steps(self, model: Path, corpus: Path) -> list[str]:
        sound = corpus / "test" / "00000.wav"
        return [
            f"headwise transcribe --model {model} {sound}",
            f"headwise look --model {model} {sound} --output attention.html",
        ]


class Sentences(Lesson):
    """Generation: sentences of a small grammar."""

    recipe, train, held_out = "demo-generate", 60_000, 500
    prompts = ("There are", "Why", "Where", "My teacher", "Did")

    @property
    def about(self) -> str:
        return f"{self.train:,} English sentences"

    def write(self, corpus: Path) -> dict[str, Any]:
        from headwise.text.phrasebook import write_corpus

        files = write_corpus(corpus, train=self.train, held_out=self.held_out)
        for name, path in files.items():
            if not name.endswith(".en"):  # the other side of the pairs, which nothing reads here
                path.unlink()
        return {"text": str(files["test.en"])}

    def show(self, model: Path, corpus: Path) -> list[Shown]:
        generator = load(model)
        asked: dict[str, Any] = {"max_tokens": 40, "temperature": 0.7, "stop": ["\n"], "seed": 1}
        return [Shown(prompt, generator.generate(prompt, **asked)[0].text) for prompt in self.prompts[:SHOWN]]

    def next_steps(self, model: Path, corpus: Path) -> list[str]:
        prompt = self.prompts[0]
        return [
            f'headwise generate --model {model} "{prompt}" --temperature 0.7 --max-tokens 60',
            f'headwise look --model {model} "{prompt} two red books on the table." --output attention.html',
        ]


LESSONS: dict[str, Lesson] = {"classify": Messages(), "transcribe": Melodies(), "generate": Sentences()}


def task_demo(
    task: str,
    output: Path,
    *,
    overrides: Sequence[str] = (),
    hooks: Sequence[Hook] = (),
    tell: Callable[[str], None] = lambda line: None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> TaskDemo | Finished:
    """Writes data, trains, evaluates and shows answers; returns only a Finished if the run was interrupted."""
    lesson = find_lesson(task)
    corpus = output / "corpus"
    tell(f"writing {lesson.about} to {corpus}")
    asked = lesson.write(corpus)
    loaded = load_recipe(lesson.recipe, overrides, data=corpus)
    finished = trained_once(loaded, output, hooks=hooks, tell=tell, progress=progress)
    if finished.reason.startswith("SIG"):
        return finished
    tell("evaluating on held-out data")
    scores = evaluate(str(finished.model), **asked).lines()
    model = finished.model
    return TaskDemo(corpus, finished, scores, lesson.show(model, corpus), lesson.next_steps(model, corpus))


def find_lesson(task: str) -> Lesson:
    if task not in LESSONS:
        raise UsageError(f"there is no demo of the task '{task}'; choose one of translate, {', '.join(LESSONS)}")
    return LESSONS[task]


def _rows(table: Path, count: int) -> list[tuple[str, str]]:
    import csv

    with open(table, encoding="utf-8", newline="") as stream:
        return [(row[0], row[1]) for row in islice(csv.reader(stream), 1, 1 + count)]
