"""The task `translate`: source text to target text, with any network that encodes a source and decodes by token."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe, require_family
from headwise.decoding import translator
from headwise.decoding.engine import AutoEngine, Engine
from headwise.decoding.hypothesis import Scores
from headwise.decoding.translator import Translation
from headwise.errors import ModelError, RecipeError, UsageError, WorkFailed
from headwise.tasks.automatic import Choice, DataFacts, before_tokenizing, choose, only_on_outputs, optimisation
from headwise.tasks.interface import Evaluated, Facts, LineScore, Measured, OnProgress, Prepared, Served, check_shown
from headwise.tasks.prefixes import Asked, choose_prefix, parts_of, prefixes_of
from headwise.tasks.text_data import TextTask
from headwise.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from headwise.data.pairs import PairBatches
    from headwise.data.store import Store
    from headwise.look.capture import Look
    from headwise.models.interface import Network
    from headwise.training.hooks import Scorer

ENGINES = ("auto", "torch", "ctranslate2")
PROBE = "a"  # input that tests whether a model can decode
# The fast engine cannot be interrupted within a sentence. On a server it decodes sentences of up to this many tokens ×
# (beam + 1) only, which takes a model of the size of those that come with Headwise some 0.3 seconds.
FAST_COST = 600
MOST_SHOWN = 128  # tokens of a text whose attention a server draws: the page grows with the square of the length


class Translator(translator.Translator):
    """Translates, and shows what every head attends to."""

    def look(self, text: str, target: str | None = None, *, beam: int | None = None) -> Look:
        """Shows the attention in one text and `target`, by default the translator's own translation."""
        return TASK.look(self, text, target, beam=beam)

    @property
    def network(self) -> Network:
        """The model itself, on torch."""
        engine: Any = self.engine.torch if isinstance(self.engine, AutoEngine) else self.engine
        if engine.name != "torch":
            raise UsageError("the ctranslate2 engine cannot show attention; use the torch engine")
        found: Network = engine.model
        return found


class Translate(TextTask):
    """Translation: learns from sentence pairs, is scored by BLEU and chrF."""

    name = "translate"
    reads = (("source", "target"),)
    scores = ("bleu", "chrf")
    mixes = True

    # ---- training

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        choices = before_tokenizing(recipe, facts)
        if any(choice.key == "model.preset" for choice in choices):
            choices.append(Choice("decoding.length_penalty", 1.5, "a small model stops too early"))
            choices += only_on_outputs(recipe)
        chosen, _ = choose(recipe, choices)
        batch_tokens = 1024 if facts.lines < 200_000 else 4096
        width = getattr(chosen.model.settings, "model_dim", 128)
        return [*choices, *optimisation(recipe, width, batch_tokens, f"{facts.lines:,} {facts.unit}")]

    def preprocessing(self, recipe: Recipe) -> dict[str, Any]:
        return prefixes_of(recipe.data)

    def sizes(self, assets: Assets, recipe: Recipe) -> dict[str, Any]:
        tokenizers = assets.tokenizers
        one = tokenizers.shared or tokenizers.source.vocabulary == tokenizers.target.vocabulary
        wanted = require_family(recipe.model.family).sizes
        if not one and "vocab" in wanted:
            raise RecipeError(f"model.family = '{recipe.model.family}' has one vocabulary: set tokenizer.shared = true")
        if not one and getattr(recipe.model.settings, "tie", "none") == "all":
            raise RecipeError(
                "model.tie = 'all' needs tokenizer.shared = true; with two vocabularies set model.tie = 'target'"
            )
        target = tokenizers.target.size
        found = {"source_vocab": tokenizers.source.size, "target_vocab": target, "vocab": target}
        return {name: found[name] for name in wanted}

    def batches(
        self,
        store: Store,
        recipe: Recipe,
        assets: Assets,
        max_length: int | None,
        *,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
    ) -> PairBatches:
        from headwise.data.pairs import PairBatches
        from headwise.text.subword_regularisation import sampler

        settings, rates = recipe.training, (recipe.tokenizer.dropout, recipe.tokenizer.target_dropout)
        if not shuffle:
            longest = max(store.manifest.longest.values()) + 1
            return PairBatches(store, max(settings.batch_tokens, longest), shuffle=False)
        # The sides have different seeds; otherwise the same positions of both would draw the same numbers.
        resample = (
            sampler(assets.tokenizers.source, rates[0], 2 * settings.seed) if rates[0] else None,
            sampler(assets.tokenizers.target, rates[1], 2 * settings.seed + 1) if rates[1] else None,
        )
        return PairBatches(
            store, settings.batch_tokens, settings.seed, longest=max_length, rank=rank, world=world, resample=resample,
            weights=[part.weight for part in recipe.data.mixture],
        )  # fmt: skip

    def scorer(self, network: Network, assets: Assets, recipe: Recipe) -> Scorer | None:
        from headwise.tasks.validation_scores import make_scorer, validation_pairs

        parts = validation_pairs(recipe)
        return make_scorer(network, assets.tokenizers, recipe, parts) if parts else None

    def describe(self, model: Path, recipe: Recipe, prepared: Prepared) -> dict[str, Any]:
        from headwise.tasks.validation_scores import calibration, validation_pairs

        parts = validation_pairs(recipe)
        return {"calibration": calibration(model, parts)} if parts else {}

    # ---- using a model

    def open(
        self,
        bundle: Bundle,
        engine: str = "auto",
        *,
        precision: str = "int8",
        scores: Scores = "tokens",
        device: str = "cpu",
        prefix: str | None = None,
        languages: Sequence[str] = ("", ""),
        **options: Any,
    ) -> Translator:
        """Opens a translator on one of the ENGINES; `auto` is ctranslate2 if it is installed and supports the options.

        Of a model of several tasks or directions one is chosen by its `prefix`, or by its `languages`, source and
        target; an empty prefix means that the texts will have theirs.

        `scores` saves time: with "sentences" the ctranslate2 engine computes no log-probabilities of tokens; with
        "none" there is no confidence, and no score of greedy search either (they are NaN).
        """
        if engine not in ENGINES:
            raise UsageError(f"unknown engine '{engine}'; choose one of {', '.join(ENGINES)}")
        chosen = choose_prefix(bundle, Asked(prefix, *languages))
        tokenizers = TokenizerPair.load(bundle.path)
        meant = replace(bundle, languages=chosen.languages)

        def on_torch() -> Engine:
            from headwise.bundle.weights import load_model
            from headwise.decoding.torch_engine import TorchEngine

            return TorchEngine(load_model(bundle, device), frozen=True, scores=scores)

        if engine == "torch":
            return Translator(meant, tokenizers, on_torch(), chosen.prefix)
        try:
            fast = _fast_engine(bundle, tokenizers, precision, scores)
        except (WorkFailed, UsageError):
            if engine == "ctranslate2":
                raise
            return Translator(meant, tokenizers, on_torch(), chosen.prefix)
        best = fast if engine == "ctranslate2" else AutoEngine(fast, on_torch)
        return Translator(meant, tokenizers, best, chosen.prefix)

    def decodes(self, bundle: Bundle) -> bool:
        return True

    def evaluate(self, bundle: Bundle, on_progress: OnProgress | None = None, **asked: Any) -> Evaluated:
        from headwise.tasks.part_scores import evaluate_recipe
        from headwise.tasks.translation_scores import EvaluateOptions, evaluate_translation

        if "text" in asked:
            raise UsageError(
                f"{bundle.path} is a translation model: evaluate it with --source FILE and --reference FILE"
            )
        if "recipe" in asked:
            return evaluate_recipe(bundle, asked.pop("recipe"), on_progress, **asked)
        return evaluate_translation(EvaluateOptions(bundle=bundle, **asked), on_progress)

    def measure(self, bundle: Bundle, files: Mapping[str, Sequence[str]], engine: str = "torch") -> Measured:
        from headwise.evaluation.metrics import corpus_scores
        from headwise.text.lines import read_lines

        sides = ("source", "target")
        sources, references = ([line for file in files[side] for line in read_lines(file)] for side in sides)
        found = self.open(bundle, engine, scores="none").translate(sources)
        texts = [" ".join(translation.text.split("\n")) for translation in found]
        scores = corpus_scores(texts, references, language=bundle.languages[-1], metrics=("bleu", "chrf"))
        return Measured(tuple((score.name, score.value, score.signature) for score in scores), tuple(texts))

    def score(self, bundle: Bundle, files: Mapping[str, str], **options: Any) -> Iterator[list[LineScore]]:
        from headwise.text.lines import aligned_lines

        opened = self.open(bundle, "torch", **options)
        pair = opened.tokenizers
        for sources, targets in aligned_lines(files["source"], files["target"]):
            ids = pair.target.encode_batch(targets)
            found = opened.engine.score(pair.source.encode_batch([opened.prefix + text for text in sources]), ids)
            yield [
                LineScore(sum(log_probs), tuple(pair.target.pieces(sentence)), log_probs)
                for sentence, log_probs in zip(ids, found, strict=True)
            ]

    def look(self, opened: Translator, item: str, target: str | None = None, **options: Any) -> Look:
        from headwise.look.capture import look_at_translation

        text, pair = item.strip(), opened.tokenizers
        if (length := opened.length(text)) > opened.longest_source:
            raise UsageError(
                f"the text has {length - 1} tokens, but one pass of the model reads fewer than "
                f"{opened.longest_source}; look at one sentence at a time"
            )
        source_ids = pair.source.encode(opened.prefix + text)
        if target is not None:
            target_ids = pair.target.encode(target.strip())
        else:
            target_ids = list(opened.translate(text, beam=options.get("beam"), split_sentences=False).ids)
        return look_at_translation(opened.network, pair, source_ids, target_ids)

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> ServedTranslator:
        opened = self.open(bundle, engine, precision=precision, scores="sentences")
        if len(opened.bundle.languages) != 2:
            raise UsageError(
                f"{bundle.path} cannot be served: its config has no source and target language; set data.languages"
            )
        return ServedTranslator(name, opened)

    def serve_each(self, name: str, bundle: Bundle, engine: str, precision: str) -> list[Served]:
        """Of a model of several directions all, with one engine: NAME:de-en, NAME:en-de, …"""
        pairs = list(dict.fromkeys(tuple(part.languages) for part in parts_of(bundle) if len(part.languages) == 2))
        if len(pairs) < 2:
            return [self.serve(name, bundle, engine, precision)]
        first = self.open(bundle, engine, precision=precision, scores="sentences", languages=pairs[0])
        found: list[Served] = []
        for pair in pairs:
            chosen = choose_prefix(bundle, Asked(None, *pair))
            meant = replace(bundle, languages=chosen.languages)
            opened = Translator(meant, first.tokenizers, first.engine, chosen.prefix)
            found.append(ServedTranslator(f"{name}:{'-'.join(pair)}", opened))
        return found


TASK = Translate()


def _fast_engine(bundle: Bundle, tokenizers: TokenizerPair, precision: str, scores: Scores) -> Engine:
    if not importlib.util.find_spec("ctranslate2"):
        raise UsageError("the ctranslate2 engine is not installed; pip install ctranslate2, or use --engine torch")
    from headwise.decoding.ctranslate2_engine import CTranslate2Engine
    from headwise.interop.ctranslate2.export import table_length
    from headwise.interop.ctranslate2.kept import kept_export

    return CTranslate2Engine(
        kept_export(bundle, tokenizers, precision), tokenizers, longest=table_length(bundle.architecture),
        precision=precision, source_end=bool(bundle.architecture.get("source_end", True)), scores=scores,
    )  # fmt: skip


class ServedTranslator:
    """A translator for a server. Torch, if it is needed, uses one thread, since requests run in parallel."""

    def __init__(self, name: str, opened: Translator) -> None:
        self.translator = opened
        self._detailed = _with_token_scores(opened)
        beam = opened.options().beam
        self.facts = Facts.of(name, opened.bundle, opened.engine.name, beam=beam)

    @property
    def only_torch(self) -> bool:
        return self.translator.engine.name == "torch"

    def probe(self) -> None:
        self.translator.translate([PROBE], beam=1)

    @property
    def has_torch(self) -> bool:
        """Tells whether it can translate on torch, besides the fast engine or instead of it."""
        return self.only_torch or isinstance(self.translator.engine, AutoEngine)

    def probe_torch(self) -> None:
        self.translate([PROBE], torch=True, beam=1)

    def translate(
        self, texts: Sequence[str], *, details: bool = False, torch: bool = False, **options: Any
    ) -> list[Translation]:
        """Translates; with `details`, each token has its log-probability. With `torch`, not on the fast engine."""
        if torch and self.has_torch:
            return self._on_torch().translate(texts, **options)
        return (self._detailed if details else self.translator).translate(texts, **options)

    def _on_torch(self) -> Translator:
        opened = self.translator
        one_torch_thread()
        if not isinstance(opened.engine, AutoEngine):
            return opened
        return Translator(opened.bundle, opened.tokenizers, opened.engine.torch, opened.prefix)

    def look(self, text: str, target: str | None) -> str:
        """Returns a page that shows the attention in this translation, or in the model's own."""
        from headwise.look.page import page

        tokens = self.translator.length(text)
        check_shown(max(tokens, len(self.translator.tokenizers.target.encode(target or ""))), MOST_SHOWN)
        slow = self.has_torch and too_slow(tokens, self.facts.default_beam or 1)
        one_torch_thread()
        look = (self._on_torch() if slow else self.translator).look(text, target)
        return page(look, look.panels(), "attention")


def too_slow(tokens: int, beam: int) -> bool:
    """Tells whether a sentence takes the fast engine longer than a server may wait for it."""
    return tokens * (beam + 1) > FAST_COST


def _with_token_scores(opened: Translator) -> Translator:
    """Copies a translator, sharing its weights, so that it returns token scores (the torch engine always does)."""
    own = opened.engine
    engine: Any = copy.copy(own.fast if isinstance(own, AutoEngine) else own)
    engine.scores = "tokens"
    chosen = AutoEngine(engine, lambda: own.torch) if isinstance(own, AutoEngine) else engine
    return Translator(opened.bundle, opened.tokenizers, chosen, opened.prefix)


def one_torch_thread() -> None:
    """Limits torch to one thread, in the calling thread."""
    import torch

    torch.set_num_threads(1)


def require_translator(bundle: Bundle) -> None:
    """Raises a ModelError if the model does not translate."""
    if bundle.task_name != TASK.name:
        raise ModelError(f"{bundle.path} is a model of the task '{bundle.task_name}', which does not translate")
