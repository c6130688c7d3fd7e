"""The task `transcribe`: from sound to text, with any network that encodes sound and decodes by token."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe
from headwise.decoding.speech_options import SpeechEngine
from headwise.decoding.transcriber import Transcriber
from headwise.errors import DataError, UsageError, WorkFailed
from headwise.evaluation.contamination import Overlap
from headwise.evaluation.error_rates import ErrorRates, Normalisation, error_rates
from headwise.sound.reading import SoundFile
from headwise.tasks.automatic import Choice, DataFacts, before_tokenizing, choose, gentler, optimisation
from headwise.tasks.interface import Examined, Measured, OnProgress, Prepared, Progress, Task, trained_columns
from headwise.tasks.served_transcriber import ServedTranscriber
from headwise.text.speech_tokens import SpeechTokens

if TYPE_CHECKING:
    from headwise.data.feature_store import FeatureStore
    from headwise.data.recordings import Recordings
    from headwise.data.sound_batches import SoundBatches
    from headwise.look.sound_look import SoundLook
    from headwise.models.interface import Network
    from headwise.training.hooks import Scorer

ENGINES = ("auto", "torch", "ctranslate2")
SAMPLES = 2  # shown in validation
# Characters of text below which pieces of words would be too rare to learn: then tokens are characters.
FEW_CHARACTERS = 500_000


@dataclass(frozen=True)
class SpeechScores:
    """What `headwise evaluate` reports of a speech model."""

    rates: ErrorRates
    decoding: str
    seconds: float
    translations: list[str] = field(default_factory=list)  # the transcripts, one per recording
    overlap: Overlap | None = None

    def lines(self) -> list[str]:
        first, *others = self.rates.lines()
        return [first, *others[:2], f"decoded with {self.decoding}; {self.seconds:,.1f} s of sound", *others[2:]]

    def as_dict(self) -> dict[str, Any]:
        return {**self.rates.as_dict(), "decoding": self.decoding, "seconds": round(self.seconds, 3), "overlap": None}


class Transcribe(Task):
    """Speech recognition: learns from recordings with their texts, is scored by word and character error rates."""

    name = "transcribe"
    reads = (("sounds",),)
    scores = ("wer", "cer")
    falling = ("wer", "cer")

    # ---- training

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        size = f"{facts.characters:,} characters"
        kind = [Choice("tokenizer.kind", "char", size)] if facts.characters < FEW_CHARACTERS else []
        chosen, _ = choose(recipe, kind if recipe.model.from_ is None else [])
        choices = [*kind, *before_tokenizing(chosen, facts)]
        chosen, _ = choose(chosen, choices)
        width = getattr(chosen.model.settings, "model_dim", 128)
        window = getattr(chosen.model.settings, "source_positions", 1500)
        batch = max(8000, 4 * window)
        rates = optimisation(recipe, width, batch, f"{facts.lines:,} {facts.unit}")
        # Attention to sound is found late, and suddenly; a high rate keeps it from being found at all.
        return [*choices, *gentler(rates, 2.5), Choice("training.best", "wer", "what a recogniser is for")]

    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        from headwise.data.recordings import read_recordings, recording_places
        from headwise.tasks import sound_data

        places = recording_places(recipe.data.sounds, base)
        lines = sum(1 for _ in read_recordings(places, recipe.data.columns, on_bad=lambda kind, error: None))
        return sound_data.examine(recipe, base, sound_data.window_of(recipe, lines), on_progress)

    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        from headwise.tasks import sound_data

        return sound_data.prepare(recipe, base, cache, start=start, progress=progress)

    def tokenizer_text(self, recipe: Recipe, base: Path) -> tuple[Recordings, str]:
        from headwise.tasks import sound_data

        return sound_data.tokenizer_text(recipe, base)

    def open_store(self, directory: Path) -> FeatureStore:
        from headwise.data.feature_store import FeatureStore

        return FeatureStore(directory)

    def training_lines(self, recipe: Recipe, base: Path) -> tuple[str, Iterator[str]] | None:
        """Texts may be read again by other voices, so that a test text which was trained on is no fault."""
        return None

    def sizes(self, assets: Assets, recipe: Recipe) -> dict[str, Any]:
        return {"vocab": assets.tokenizers.target.size}

    def batches(
        self,
        store: FeatureStore,
        recipe: Recipe,
        assets: Assets,
        max_length: int | None,
        *,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
    ) -> SoundBatches:
        from headwise.data.sound_batches import SoundBatches
        from headwise.tasks.sound_data import prompt_of, settings_of, tokens_of

        settings, training = settings_of(recipe), recipe.training
        prompt = prompt_of(tokens_of(assets, settings, store.directory), recipe)
        budget = training.batch_tokens if shuffle else max(training.batch_tokens, settings.source_positions + 1)
        return SoundBatches(
            store, budget, training.seed, padded=settings.padded, longest=max_length or settings.max_length,
            prompt=prompt, variation=recipe.data.sound if shuffle else None, shuffle=shuffle, rank=rank, world=world,
        )  # fmt: skip

    def scorer(self, network: Network, assets: Assets, recipe: Recipe) -> Scorer | None:
        """Decodes the first recordings of the validation data greedily, which is fast and ranks models well enough."""
        from headwise.decoding.torch_speech import TorchSpeech
        from headwise.tasks.sound_data import settings_of, tokens_of, validation_files

        files = validation_files(recipe, Path())
        if files is None:
            return None
        tokens = tokens_of(assets, settings_of(recipe), Path("preprocessing.json").parent)
        bundle = Bundle(Path(), recipe.model.family, dict(network.architecture), recipe.data.languages)
        opened = Transcriber(bundle, assets.tokenizers.target, tokens, TorchSpeech(network, tokens))
        sounds, references = first_recordings(files, recipe.training.validation_sentences, opened.window)

        def scorer() -> tuple[dict[str, float], list[tuple[str, str, str]]]:
            asked: dict[str, Any] = {"beam": 1, "timestamps": False, "temperatures": (0.0,), "batch": 32}
            found = opened.transcribe(sounds, language=_language(tokens, recipe), **asked)
            texts = [transcript.text for transcript in found]
            rates = error_rates(references, texts)
            shown = list(zip([Path(sound).name for sound in sounds], references, texts, strict=True))[:SAMPLES]
            return {"wer": rates.wer, "cer": rates.cer}, shown

        return scorer

    # ---- using a model

    def open(
        self, bundle: Bundle, engine: str = "auto", *, precision: str = "int8", device: str = "cpu", **options: Any
    ) -> Transcriber:
        """Opens a transcriber on torch or ctranslate2; `auto` takes the faster one that can run the model."""
        from headwise.tasks.sound_data import tokens_of

        if engine not in ENGINES:
            raise UsageError(f"unknown engine '{engine}'; choose one of {', '.join(ENGINES)}")
        assets = Assets.load(bundle.path)
        tokens = tokens_of(assets, bundle.settings, bundle.path)

        def on_torch() -> SpeechEngine:
            from headwise.bundle.weights import load_model
            from headwise.decoding.torch_speech import TorchSpeech

            return TorchSpeech(load_model(bundle, device), tokens, frozen=True)

        def opened(found: SpeechEngine) -> Transcriber:
            return Transcriber(bundle, assets.tokenizers.target, tokens, found)

        if engine == "torch" or (engine == "auto" and device != "cpu"):
            return opened(on_torch())
        try:
            return opened(_fast_engine(bundle, assets, tokens, precision, on_torch))
        except (WorkFailed, UsageError):
            if engine == "ctranslate2":
                raise
            return opened(on_torch())

    def decodes(self, bundle: Bundle) -> bool:
        return True

    def unit(self, assets: Assets) -> str:
        return "recordings"

    def evaluate(self, bundle: Bundle, on_progress: OnProgress | None = None, **asked: Any) -> SpeechScores:
        """Transcribes the recordings of the table or folder `sounds`, and compares with their texts."""
        sounds, columns = asked.pop("sounds", ""), tuple(asked.pop("columns", ()) or trained_columns(bundle))
        engine, beam, language = asked.pop("engine", "auto"), asked.pop("beam", None), asked.pop("language", None)
        normalisation: Normalisation = asked.pop("normalisation", "plain")
        if not sounds or asked:
            raise UsageError(f"{bundle.path} is a speech model: evaluate it with --sounds TABLE only")
        from headwise.data.recordings import read_recordings, recording_places

        places = recording_places([sounds] if isinstance(sounds, str) else sounds)
        found = list(read_recordings(places, columns))
        if not found:
            raise DataError("there is no recording to evaluate", file=places[0])
        opened = self.open(bundle, engine)
        texts, seconds = list[str](), 0.0
        files: Sequence[str] = [recording.sound for recording in found]
        for transcript in opened.transcribe_each(files, beam=beam, language=language):
            texts.append(transcript.text)
            seconds += transcript.seconds
            if on_progress is not None:
                on_progress(1)
        rates = error_rates([recording.text for recording in found], texts, normalisation)
        beam = beam or bundle.decoding.get("beam", 5)
        return SpeechScores(rates, f"beam:{beam}|engine:{opened.engine.name}", seconds, texts)

    def measure(self, bundle: Bundle, files: Mapping[str, Sequence[str]], engine: str = "torch") -> Measured:
        found = self.evaluate(bundle, sounds=files["sounds"], engine=engine)
        signature = f"{found.decoding}|{found.rates.signature}"
        scores = (("WER", found.rates.wer, signature), ("CER", found.rates.cer, signature))
        return Measured(scores, tuple(found.translations))

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> ServedTranscriber:
        return ServedTranscriber(
            name, self.open(bundle, engine, precision=precision), lambda: self.open(bundle, "torch")
        )

    def look(self, opened: Transcriber, item: SoundFile, target: str | None = None, **options: Any) -> SoundLook:
        """Shows where in the first window of a sound file the model attends to, token by token as it writes."""
        from headwise.decoding.speech_options import SpeechOptions, SpeechSearch
        from headwise.look.sound_look import look_at_sound
        from headwise.sound.features import frames_of

        window, features = opened.first_window(item)
        tokens, language = opened.tokens, None
        if tokens.languages:
            chances = opened.engine.languages([features])[0]
            language = max(chances, key=lambda name: chances[name])
        prompt = tokens.prompt(language, "transcribe", timestamps=False)
        if target is None:
            beam = SpeechOptions.of_model(opened.bundle.decoding, beam=options.get("beam")).beam
            ids = opened.engine.search([features], [prompt], SpeechSearch(beam=beam))[0].tokens
        else:  # texts of published models begin with a space
            ids = tuple(opened.tokenizer.encode(target if tokens.no_speech is None else f" {target.strip()}"))
        if len(prompt) + len(ids) > int(opened.bundle.architecture["max_length"]):
            raise UsageError(f"the text has {len(ids)} tokens, more than the model can write at once; shorten --target")
        heads = [(layer, head) for layer, head in tokens.alignment_heads]
        frames = min(len(features), frames_of(len(window.samples)))
        return look_at_sound(opened.network, opened.tokenizer, features, frames, prompt, ids, heads)


TASK = Transcribe()


def _fast_engine(
    bundle: Bundle, assets: Assets, tokens: SpeechTokens, precision: str, on_torch: Callable[[], SpeechEngine]
) -> SpeechEngine:
    if not importlib.util.find_spec("ctranslate2"):
        raise UsageError("the ctranslate2 engine is not installed; pip install ctranslate2, or use --engine torch")
    from headwise.decoding.ctranslate2_speech import LANGUAGES_FROM, CTranslate2Speech
    from headwise.interop.ctranslate2.kept import kept_export

    if tokens.languages and len(tokens.published_order(assets.tokenizers.target.size)) < LANGUAGES_FROM:
        raise UsageError("ctranslate2 detects languages only with the vocabulary of Whisper; use the torch engine")
    return CTranslate2Speech(kept_export(bundle, assets.tokenizers, precision), bundle, tokens, on_torch)


def first_recordings(files: Any, most: int, window: int) -> tuple[list[str], list[str]]:
    """The first recordings that one window can hold, and their texts."""
    from headwise.data.recordings import Recordings
    from headwise.sound.features import FRAMES_PER_SECOND
    from headwise.sound.reading import sound_info
    from headwise.tasks.text_data import UNFILTERED

    sounds, texts = list[str](), list[str]()
    for _, recording in Recordings(files, UNFILTERED).numbered():
        if len(sounds) >= most:
            break
        try:
            if sound_info(recording.sound).seconds > window / FRAMES_PER_SECOND:
                continue
        except DataError:
            continue
        sounds.append(recording.sound)
        texts.append(recording.text)
    return sounds, texts


def _language(tokens: Any, recipe: Recipe) -> str | None:
    return (recipe.data.languages or ("en",))[0] if tokens.languages else None
