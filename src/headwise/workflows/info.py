"""`headwise info`: describes a model directory without loading its weights."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import CONFIG, open_bundle, parameter_count
from headwise.tasks import find_task
from headwise.tasks.prefixes import KIND, parts_of
from headwise.workflows.models import ShippedScore, card_scores


@dataclass(frozen=True)
class TokenizerInfo:
    side: str  # source, target, or both
    kind: str
    size: int
    normalisation: str


@dataclass(frozen=True)
class ModelInfo:
    """Everything that the files of a model directory tell about it."""

    path: str
    family: str
    family_about: str
    task: str
    languages: tuple[str, ...]
    parameters: int
    architecture: dict[str, Any]
    tokenizers: tuple[TokenizerInfo, ...]
    decoding: dict[str, Any]
    scores: dict[str, float]  # on validation data, at the end of training
    sentences: int | None  # or rows, lines, recordings, …, that it was trained on
    written_by: str | None  # version of headwise
    files: dict[str, int]  # bytes
    precision: str = "float32"  # of the stored weights
    about: dict[str, str] = field(default_factory=dict)  # the description in a shipped model's card
    tests: tuple[ShippedScore, ...] = ()  # scores with their signatures
    labels: tuple[str, ...] = ()  # of its classes
    temperature: float | None = None  # of its probabilities
    unit: str = "sentences"  # what it was trained on, in words
    prefixes: tuple[str, ...] = ()  # that say what to do, of a model of several tasks

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def model_info(path: Path) -> ModelInfo:
    """Describes a model directory, or the one inside a run or checkpoint; compares every file with its hash."""
    bundle = open_bundle(path)
    card, data, about = bundle.card, bundle.card.get("data"), bundle.card.get("about")
    assets, task = Assets.load(bundle.path), find_task(bundle.task_name)
    of_text = assets.preprocessing.get("kind") == KIND
    sentences = data.get("sentences") if isinstance(data, dict) else None
    return ModelInfo(
        path=str(bundle.path),
        family=bundle.family,
        family_about=bundle.declared.about,
        task=bundle.task_name,
        languages=bundle.languages,
        parameters=parameter_count(bundle),
        architecture=bundle.architecture,
        tokenizers=_tokenizers(assets),
        labels=assets.labels,
        prefixes=tuple(part.prefix or part.name for part in parts_of(bundle)) if of_text else (),
        temperature=numbers(bundle.card).get("temperature"),
        unit=task.unit(assets),
        decoding=bundle.decoding if task.decodes(bundle) else {},
        scores=numbers(card.get("validation")),
        sentences=sentences if isinstance(sentences, int) else None,
        written_by=str(card["headwise"]) if "headwise" in card else None,
        files={name: (bundle.path / name).stat().st_size for name in (CONFIG, *bundle.files)},
        precision=bundle.precision,
        about={str(name): str(text) for name, text in about.items()} if isinstance(about, dict) else {},
        tests=tuple(card_scores(card)),
    )


def _tokenizers(assets: Assets) -> tuple[TokenizerInfo, ...]:
    pair = assets.text
    if pair is None:
        return ()
    sides = {"both": pair.source} if pair.shared else {"source": pair.source, "target": pair.target}
    return tuple(TokenizerInfo(side, t.kind, t.size, t.normalisation) for side, t in sides.items())


def numbers(values: Any) -> dict[str, float]:
    """The numbers among the values of a part of a card."""
    if not isinstance(values, dict):
        return {}
    return {str(name): value for name, value in values.items() if type(value) in (int, float)}
