"""The task `generate`: continues a prompt with any network that decodes token by token without a source."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle, open_bundle
from headwise.config.schema import Recipe
from headwise.decoding.generation import Writer
from headwise.errors import ModelError, RecipeError, UsageError
from headwise.evaluation.contamination import Overlap, seen_in_training
from headwise.evaluation.paired_lines import LineComparison
from headwise.evaluation.perplexity import Perplexity
from headwise.tasks.automatic import (
    Choice,
    DataFacts,
    before_tokenizing,
    choose,
    only_on_outputs,
    optimisation,
    optimises_itself,
)
from headwise.tasks.interface import Facts, LineScore, Measured, OnProgress, Prepared, Progress, check_shown
from headwise.tasks.text_data import TextTask
from headwise.tasks.translate import PROBE, one_torch_thread
from headwise.text.tokenizer import EOS, TokenizerPair

if TYPE_CHECKING:
    from headwise.data.cursor import Batches
    from headwise.data.store import Store
    from headwise.decoding.generation import Writing
    from headwise.look.capture import Look

ENGINES = ("torch", "ctranslate2")
UNSEEN = "unseen_tokens"  # in preprocessing.json
_CHUNK = 512  # lines scored at a time
_CONTINUED, _CONTINUATION = 100, 8  # lines whose beginning `measure` continues, and by how many tokens


@dataclass(frozen=True)
class TextScores:
    """The perplexity of a text."""

    perplexity: Perplexity
    overlap: Overlap | None = None
    comparison: LineComparison | None = None

    def lines(self) -> list[str]:
        found = self.perplexity
        rows = [
            f"perplexity          {found.value:10.4f}  {found.signature}",
            f"per word            {found.per_word:10.4f}",
            f"bits per character  {found.bits_per_character:10.4f}",
        ]
        if found.unknown:
            rows.append(
                f"{found.unknown:,} of {found.tokens:,} tokens are unknown to the model, which is easier than to spell "
                "them: not comparable with a model that knows them"
            )
        if (one := self.comparison) is not None:
            verdict = "significant" if one.significant else "not significant"
            rows.append(
                f"bits per character  {one.baseline:.4f} → {one.system:.4f} ({one.difference:+.4f})  "
                f"p = {one.p_value:.4f}, {verdict} at 5 %  {one.signature}"
            )
        return rows

    def as_dict(self) -> dict[str, Any]:
        found = self.perplexity
        figures = {
            "perplexity": found.value, "per_word": found.per_word, "bits_per_character": found.bits_per_character
        }  # fmt: skip
        one = self.comparison
        compared = (
            None if one is None else {**asdict(one), "difference": one.difference, "significant": one.significant}
        )
        overlap = None if self.overlap is None else self.overlap.as_dict()
        return {**figures, **asdict(found), "overlap": overlap, "comparison": compared}


def unseen_tokens(assets: Assets, place: Path | str) -> tuple[int, ...]:
    """The ids that a model's training text never had, as its directory says; older models do not say."""
    found, size = assets.preprocessing.get(UNSEEN, []), assets.tokenizers.target.size
    if not isinstance(found, list) or not all(type(one) is int and EOS < one < size for one in found):
        raise ModelError(f"{place}: preprocessing.json is damaged: {UNSEEN} must be ids of tokens; take another copy")
    return tuple(found)


class Generate(TextTask):
    """Language modelling: learns from running text, is scored by perplexity."""

    name = "generate"
    reads = (("text",),)
    ships_fast = False  # sampling is done on torch

    # ---- training

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        choices = before_tokenizing(recipe, facts)
        if any(choice.key == "model.preset" for choice in choices):
            choices.append(Choice("model.max_length", 256, "a small model"))
            choices.append(Choice("model.positions", "rotary", "a small model"))
            choices += only_on_outputs(recipe)
        if not optimises_itself(recipe):
            choices.append(Choice("training.optimizer", "adamw", "does not memorise"))
            choices.append(Choice("training.weight_decay", 0.1, "does not memorise"))
        choices.append(Choice("training.label_smoothing", 0.0, "true probabilities are wanted"))
        chosen, _ = choose(recipe, choices)
        width = getattr(chosen.model.settings, "model_dim", 256)
        return [*choices, *optimisation(recipe, width, 2048, f"{facts.characters:,} characters")]

    def check(self, recipe: Recipe) -> None:
        if recipe.tokenizer.dropout or recipe.tokenizer.target_dropout:
            raise RecipeError(
                "a language model does not support tokenizer.dropout, which is for translation: set it to 0"
            )

    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        """Also finds the tokens that never occur in the text: the model will not generate them."""
        prepared = super().prepare(recipe, base, cache, start=start, progress=progress)
        tokens = range(EOS + 1, prepared.assets.tokenizers.target.size)
        unseen = set(tokens) - self.open_store(prepared.training.directory).used("text")
        if start is not None:  # the model that is fine-tuned has learned from other text before
            unseen &= set(unseen_tokens(start, "model.from"))
        told = {**prepared.assets.preprocessing, **({UNSEEN: sorted(unseen)} if unseen else {})}
        return replace(prepared, assets=replace(prepared.assets, preprocessing=told))

    def sizes(self, assets: Assets, recipe: Recipe) -> dict[str, Any]:
        return {"vocab": assets.tokenizers.target.size}

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
    ) -> Batches:
        from headwise.data.blocks import BlockBatches, StreamBatches

        settings = recipe.training
        width = settings.batch_tokens if max_length is None else min(max_length, settings.batch_tokens)
        if recipe.model.settings.streams:
            return StreamBatches(store, settings.batch_tokens, width, rank=rank, world=world)
        seed = settings.seed if shuffle else 0
        return BlockBatches(store, settings.batch_tokens, width, seed, shuffle=shuffle, rank=rank, world=world)

    # ---- using a model

    def open(
        self,
        bundle: Bundle,
        engine: str = "torch",
        *,
        precision: str = "int8",
        token_scores: bool = True,
        device: str = "cpu",
        **options: Any,
    ) -> Writer:
        """Opens a generator on torch, which supports every option, or on ctranslate2: faster, but greedy only."""
        if engine not in ("auto", *ENGINES):
            raise UsageError(f"unknown engine '{engine}'; choose one of {', '.join(ENGINES)}")
        assets = Assets.load(bundle.path)
        tokenizers, never = assets.tokenizers, unseen_tokens(assets, bundle.path)
        if engine == "ctranslate2":
            from headwise.decoding.ctranslate2_generator import CTranslate2Generator
            from headwise.interop.ctranslate2.kept import kept_export

            directory = kept_export(bundle, tokenizers, precision)
            return CTranslate2Generator(bundle, tokenizers.target, directory, never=never, token_scores=token_scores)
        from headwise.bundle.weights import load_model
        from headwise.tasks.generator import Generator

        return Generator(bundle, tokenizers.target, load_model(bundle, device), never=never)

    def unit(self, assets: Assets) -> str:
        return "lines"

    def evaluate(self, bundle: Bundle, on_progress: OnProgress | None = None, **asked: Any) -> TextScores:
        """Computes the perplexity of the file `text`; `stride` is the number of tokens between windows."""
        from headwise.bundle.weights import load_model
        from headwise.evaluation.language_model import text_perplexity
        from headwise.text.corpus import read_lines

        file, stride = asked.pop("text", ""), int(asked.pop("stride", 0) or 0)
        field = next(iter(asked.pop("fields", ())), None)
        against, test = asked.pop("against_model", ""), asked.pop("test", "bootstrap")
        if not file or asked:
            raise UsageError(f"{bundle.path} is a language model: evaluate it with --text FILE only")
        lines = [line.text for line in read_lines(file, field=field)]
        tokenizer = TokenizerPair.load(bundle.path).target
        perplexity = text_perplexity(load_model(bundle), tokenizer, lines, stride=stride, on_progress=on_progress)
        comparison = self._compare(bundle, open_bundle(against), lines, test) if against else None
        return TextScores(perplexity, seen_in_training(bundle.card, "text", lines), comparison)

    def measure(self, bundle: Bundle, files: Mapping[str, Sequence[str]], engine: str = "torch") -> Measured:
        """Answers are what the model writes after the beginnings of lines."""
        from headwise.text.corpus import read_lines

        if len(files["text"]) != 1:
            raise UsageError(f"a language model is measured on one text, not on {len(files['text'])}; join the files")
        found = self.evaluate(bundle, text=files["text"][0])
        lines = (line.text for line in read_lines(files["text"][0]) if len(line.text.split()) > 1)
        prompts = [line[: len(line) // 2] for line in islice(lines, _CONTINUED)]
        generator = self.open(bundle, engine, token_scores=False)
        texts = [generator.generate(one, max_tokens=_CONTINUATION, temperature=0.0)[0].text for one in prompts]
        scores = (("perplexity", found.perplexity.value), ("bits per character", found.perplexity.bits_per_character))
        signed = tuple((name, value, found.perplexity.signature) for name, value in scores)
        return Measured(signed, tuple(texts), found.overlap)

    def _compare(self, bundle: Bundle, other: Bundle, lines: list[str], test: str) -> LineComparison:
        """Lets two models score each line by itself, so that they can be compared line by line."""
        from headwise.bundle.weights import load_model
        from headwise.evaluation.language_model import score_lines
        from headwise.evaluation.paired_lines import compare_lines

        if other.task_name != self.name:
            raise UsageError(f"{other.path} is a model of the task '{other.task_name}', not a language model")
        kept = [line for line in lines if line.strip()]
        sides = []
        for each in (other, bundle):
            tokenizer, network = TokenizerPair.load(each.path).target, load_model(each)
            sides.append(score_lines(network, tokenizer.encode_batch(kept)))
        baseline, system = sides
        return compare_lines(baseline, system, [len(line) + 1 for line in kept], test)

    def score(self, bundle: Bundle, files: Mapping[str, str], **options: Any) -> Iterator[list[LineScore]]:
        """Scores each line by itself."""
        if options:
            raise UsageError(f"{bundle.path} is a language model, which has no {' or '.join(options)}")
        from headwise.bundle.weights import load_model
        from headwise.evaluation.language_model import score_lines
        from headwise.text.lines import line_blocks

        network, tokenizer = load_model(bundle), TokenizerPair.load(bundle.path).target
        for _, lines in line_blocks(files["text"]):
            for start in range(0, len(lines), _CHUNK):
                sentences = tokenizer.encode_batch(lines[start : start + _CHUNK])
                totals = score_lines(network, sentences)
                pieces = [tuple(tokenizer.pieces(sentence)) for sentence in sentences]
                yield [LineScore(total, tokens) for total, tokens in zip(totals, pieces, strict=True)]

    def look(self, opened: Any, item: str, target: str | None = None, **options: Any) -> Look:
        """Shows the attention in a text, which the model reads as in training: after an end of sentence."""
        from headwise.look.capture import look_at_text

        if target is not None:
            raise UsageError("a language model has no target; leave --target out")
        ids = [EOS, *opened.tokenizer.encode(item)]
        if len(ids) > (opened.context or math.inf):
            raise UsageError(
                f"the text has {len(ids)} tokens, but the model reads at most {opened.context} at once; shorten it"
            )
        return look_at_text(opened.model, opened.tokenizer, ids)

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> ServedGenerator:
        return ServedGenerator(name, self.open(bundle))


TASK = Generate()


MOST_SHOWN = 400  # tokens of a text whose attention a server draws: the page grows with the square of the length


class ServedGenerator:
    """A language model for a server, on torch with one thread, since requests run in parallel."""

    def __init__(self, name: str, generator: Writer) -> None:
        self.generator = generator
        self.facts = Facts.of(name, generator.bundle, "torch", context=generator.context)

    def probe(self) -> None:
        one_torch_thread()
        self.generator.generate(PROBE, max_tokens=1, temperature=0.0)

    def count(self, prompt: str) -> int:
        """Counts the tokens of a prompt; a line break is one."""
        if self.generator.tokenizer.reads_documents:
            return len(self.generator.tokenizer.encode(prompt))
        lines = prompt.split("\n")
        return sum(len(self.generator.tokenizer.encode(line)) for line in lines) + len(lines) - 1

    def write(self, prompt: str, **options: Any) -> Iterator[list[Writing]]:
        """Yields all samples after each token; see Writer.write."""
        one_torch_thread()
        return self.generator.write(prompt, **options)

    def look(self, text: str, target: str | None) -> str:
        from headwise.look.page import page

        check_shown(self.count(text), MOST_SHOWN)
        one_torch_thread()
        look = TASK.look(self.generator, text, target)
        return page(look, look.panels(), "attention")
