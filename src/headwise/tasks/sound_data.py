"""Recordings for training: what is wrong with them, and from tables to feature stores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.config.families import find_family
from headwise.config.schema import Recipe
from headwise.data.feature_store import FeatureStore, cached_features, write_features
from headwise.data.recordings import RecordingFiles, Recordings, fingerprint, read_recordings, recording_places
from headwise.errors import DataError
from headwise.sound.features import FRAMES_PER_SECOND
from headwise.sound.reading import sound_info
from headwise.tasks.automatic import DataFacts
from headwise.tasks.interface import Examined, OnProgress, Prepared, Progress
from headwise.tasks.text_data import UNFILTERED, make_tokenizers
from headwise.text.filters import FilterCounts, row_filter
from headwise.text.findings import MAX_EXAMPLES, Example, Finding, Report, Severity, Side
from headwise.text.report import measure
from headwise.text.speech_tokens import SpeechTokens, preprocessing, read_speech_tokens
from headwise.text.tokenizer import UNK, TokenizerPair

UNUSABLE_SHARE = 0.5  # of recordings that cannot be used: more than that cannot be meant
FASTEST = 40.0  # characters per second that nobody can say
_FAULTS = {
    "format": ("rows cannot be read", "fix or remove them"),
    "no-text": ("sounds have no .txt beside them", "write what is said, or remove them"),
    "encoding": ("texts are not UTF-8", "convert them: iconv -f WINDOWS-1252 -t UTF-8"),
    "unreadable": ("sounds cannot be read", "convert or remove them"),
    "empty": ("recordings have no text", "write what is said, or remove them"),
    "control": ("texts have control characters", "clean them: tr -d '\\000-\\010\\013-\\037'"),
    "duplicates": ("texts occurred before", "nothing need be done: the same words are said again"),
    "long": (
        "recordings are longer than the model's window of {window:g} s",
        "cut them, or raise model.source_positions",
    ),
    "fast": ("recordings have more text than can be said in their time", "check that text and sound belong together"),
}
# A model that is trained here has no timestamps, and its prompt says so, as Whisper's does: other engines look there.
OWN_TOKENS = SpeechTokens(no_timestamps=UNK)


def settings_of(recipe: Recipe) -> Any:
    """The settings of the network: those of the model that is fine-tuned, or the recipe's."""
    start = recipe.model.from_
    return recipe.model.settings if start is None else open_bundle(start, verify=False).settings


def tokens_of(assets: Assets, settings: Any, place: Path) -> SpeechTokens:
    return read_speech_tokens(assets.preprocessing, settings.mels, assets.tokenizers.target.size, place)


def prompt_of(tokens: SpeechTokens, recipe: Recipe) -> tuple[int, ...]:
    """What stands before each text; the language is the recipe's, or English."""
    languages = recipe.data.languages or ("en",)
    return tokens.prompt(languages[0], "transcribe", timestamps=False)


def training_files(recipe: Recipe, base: Path) -> RecordingFiles:
    data = recipe.data
    split = data.split and not data.validation.given
    part = ("training", data.split) if split else (None, 0.0)
    return RecordingFiles(tuple(recording_places(data.sounds, base)), data.columns, *part)


def validation_files(recipe: Recipe, base: Path) -> RecordingFiles | None:
    data = recipe.data
    if data.validation.given:
        return RecordingFiles(tuple(recording_places(data.validation.sounds, base)), data.columns)
    if not data.split:
        return None
    return RecordingFiles(tuple(recording_places(data.sounds, base)), data.columns, "validation", data.split)


def tokenizer_text(recipe: Recipe, base: Path) -> tuple[Recordings, str]:
    training = training_files(recipe, base)
    return Recordings(training, recipe.data.filters), fingerprint(training.places, training.columns)


def prepare(
    recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
) -> Prepared:
    tell = progress or (lambda stage, done, total: None)
    training, held_out, settings = training_files(recipe, base), validation_files(recipe, base), settings_of(recipe)
    stream, content = tokenizer_text(recipe, base)
    prints = {"training": content}
    if start is None:
        pair = make_tokenizers(recipe, base, cache, stream, content, tell)
        assets = Assets(pair, preprocessing=preprocessing(settings.mels, OWN_TOKENS))
    else:
        assets = start
    store = _store(cache, stream, assets.tokenizers, settings, content, "training recordings", tell)
    if not len(store):
        counts = store.manifest.counts
        raise DataError(f"no recording is left to train on: {counts}; run headwise check", file=training.places[0])
    validation = None
    if held_out is not None:
        prints["validation"] = fingerprint(held_out.places, held_out.columns)
        kept = Recordings(held_out, UNFILTERED)
        validation = _store(
            cache, kept, assets.tokenizers, settings, prints["validation"], "validation recordings", tell
        )
        if not len(validation):
            raise DataError("no recording is left to validate on; run headwise check", file=held_out.places[0])
    return Prepared(assets, store, validation, prints)


def _store(
    cache: Path, stream: Recordings, pair: TokenizerPair, settings: Any, content: str, stage: str, tell: Progress
) -> FeatureStore:
    key = ["features", content, pair.fingerprint, settings.mels, settings.window, stream.names, stream.reading]
    name = f"{stage.split()[0]}-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}"
    about = {"content": content, "tokenizers": pair.fingerprint}

    def write(directory: Path) -> None:
        write_features(
            directory, stream, pair.target, settings.mels, settings.window, about, lambda done: tell(stage, done, None)
        )

    store = cached_features(cache, name, write)
    tell(stage, store.manifest.counts.kept, store.manifest.counts.kept)
    return store


# ---- the report of `headwise check`


def examine(recipe: Recipe, base: Path, window: float, on_progress: OnProgress | None = None) -> Examined:
    """Reads tables and the headers of all sounds; `window` is the model's, in seconds."""
    check = _Check(recipe, window, on_progress or (lambda count: None))
    places = recording_places(recipe.data.sounds, base)
    check.training(places)
    for name, texts in (("validation", recipe.data.validation), ("test", recipe.data.test)):
        if texts.sounds:
            check.compare(name, recording_places(texts.sounds, base))
    report = check.report(tuple(places))
    return Examined(report, DataFacts(report.counts.kept, check.side.characters, report.unit))


def window_of(recipe: Recipe, lines: int) -> float:
    """The window of the model that will be trained, in seconds: the preset may follow from the size of the data."""
    settings: Any = settings_of(recipe)
    family = find_family(recipe.model.family)
    if family is not None and recipe.model.from_ is None and recipe.model.preset is None and not recipe.model.own:
        preset = next((name for bound, name in family.by_size if lines <= bound), None)
        settings = family.resolve(preset, {})
    return float(settings.window / FRAMES_PER_SECOND)


class _Check:
    def __init__(self, recipe: Recipe, window: float, on_progress: OnProgress) -> None:
        self.columns, self.filters, self.window, self.on_progress = (
            recipe.data.columns, recipe.data.filters, window, on_progress
        )  # fmt: skip
        self.counts, self.side = FilterCounts(), Side("text", ())
        self.found: dict[str, list[Example]] = {}
        self.totals: dict[str, int] = {}
        self.sounds: set[str] = set()
        self.seconds = 0.0
        self.held_out: dict[str, int] = {}
        self.overlaps: list[Finding] = []

    def training(self, places: list[str]) -> None:
        drop = row_filter(self.filters)
        for recording in read_recordings(places, self.columns, on_bad=self._unreadable):
            measure(self.side, [recording.text])
            self.sounds.add(str(Path(recording.sound).resolve()))
            example = Example(recording.file, recording.line, recording.text[:80])
            reason = drop((recording.text,))
            reason = reason or ("max_characters" if len(recording.text) > self.filters.max_characters else None)
            if reason is not None:
                self._add(reason, example)
            reason = reason or self._listen(recording.sound, recording.text, example)
            self.counts.add(reason)
            self.on_progress(1)

    def _listen(self, sound: str, text: str, example: Example) -> str | None:
        """Why a sound is not used, by its header alone."""
        try:
            seconds = sound_info(sound).seconds
        except DataError as error:
            self._add("unreadable", Example(example.file, example.line, str(error)))
            return "unreadable"
        self.seconds += seconds
        if seconds > self.window:
            self._add("long", example)
            return "long"
        if len(text) > FASTEST * max(seconds, 0.5):
            self._add("fast", example)
        return None

    def compare(self, name: str, places: list[str]) -> None:
        """Sounds of held-out data that are trained on."""
        count, both = 0, list[Example]()
        for recording in read_recordings(places, self.columns, on_bad=self._unreadable):
            count += 1
            if str(Path(recording.sound).resolve()) in self.sounds:
                both.append(Example(recording.file, recording.line, recording.text[:80]))
        self.held_out[name] = count
        if both:
            message = f"{len(both):,} of {count:,} {name} sounds are training sounds too"
            severity: Severity = "error" if len(both) > UNUSABLE_SHARE * count else "warning"
            remedy = "remove them from one of the two"
            self.overlaps.append(Finding(f"{name}-overlap", severity, len(both), message, remedy, both[:MAX_EXAMPLES]))

    def report(self, files: tuple[str, ...]) -> Report:
        self.side.files = files
        findings = [*self.overlaps, *(self._finding(name) for name in self.totals)]
        if not self.counts.kept:
            findings.append(Finding("nothing", "error", 0, "no recording can be used", "see the findings above", []))
        findings.append(
            Finding("length", "note", self.counts.kept, f"{self.seconds / 3600:.2f} hours of sound", "", [])
        )
        findings.sort(key=lambda finding: ("error", "warning", "note").index(finding.severity))
        return Report([self.side], self.counts, findings, None, self.held_out, "recordings")

    def _finding(self, name: str) -> Finding:
        count = self.totals[name]
        what, remedy = _FAULTS.get(name, (f"recordings are dropped ({name})", "change data.filters"))
        many = count > UNUSABLE_SHARE * max(1, self.counts.lines) and name in (
            "unreadable",
            "no-text",
            "format",
            "fast",
            "long",
        )
        severity: Severity = "error" if many else "note" if name == "duplicates" else "warning"
        message = f"{count:,} {what.format(window=self.window)}"
        return Finding(name, severity, count, message, remedy, self.found[name])

    def _add(self, name: str, example: Example) -> None:
        self.totals[name] = self.totals.get(name, 0) + 1
        examples = self.found.setdefault(name, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(example)

    def _unreadable(self, kind: str, error: DataError) -> None:
        self.counts.add(kind)
        self._add(kind, Example(str(error.file), error.line, error.problem))


def training_texts(recipe: Recipe, base: Path) -> Iterator[str]:
    """All texts that are trained on."""
    return (recording.text for _, recording in Recordings(training_files(recipe, base), recipe.data.filters).numbered())
