"""Models that are opened to be served: what each can do, and how it is done. Torch is loaded when first needed."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from headwise.bundle.directory import Bundle
from headwise.bundle.shipped import shipped_directories
from headwise.decoding.translator import Translation, Translator
from headwise.errors import UsageError
from headwise.workflows.info import model_info
from headwise.workflows.models import HOW_TO_GET_ONE, choose_model
from headwise.workflows.translate import open_translator

if TYPE_CHECKING:
    from headwise.decoding.generation import Writing
    from headwise.workflows.load import Generator

PROBE = "a"  # what a model is made to decode, to see that it can


@dataclass(frozen=True)
class Facts:
    """What is told of a served model."""

    name: str
    kind: Literal["translate", "generate"]
    languages: tuple[str, ...]
    parameters: int
    engine: str
    context: int | None  # tokens that a language model sees at once
    default_beam: int | None
    title: str | None
    about: str | None


class ServedTranslator:
    """A translator on the engine that was asked for, and, for what only torch can do, one on torch beside it."""

    def __init__(self, name: str, translator: Translator) -> None:
        self.translator = translator
        self._scored = _with_token_scores(translator)
        self._lock = threading.Lock()
        self._exact: Translator | None = translator if translator.engine.name == "torch" else None
        self.facts = _facts(
            name, "translate", translator.bundle, translator.engine.name, beam=translator.options().beam
        )

    @property
    def only_torch(self) -> bool:
        return self._exact is self.translator

    def probe(self) -> None:
        self.translator.translate([PROBE], beam=1)

    def translate(self, texts: Sequence[str], *, beam: int | None, n_best: int, details: bool) -> list[Translation]:
        """Plain search. With `details` the log-probability of each token is known."""
        return (self._scored if details else self.translator).translate(texts, beam=beam, n_best=n_best)

    def translate_exactly(
        self, texts: Sequence[str], *, beam: int | None, n_best: int, glossary: Mapping[str, str], protect: bool
    ) -> list[Translation]:
        return self.exact.translate(texts, beam=beam, n_best=n_best, glossary=glossary, protect=protect)

    def look(self, text: str, target: str | None) -> str:
        """A page of the attention in this translation, or in the model's own."""
        from headwise.look.page import page
        from headwise.workflows.look import look_at

        if target is None:
            # The picture is of the translation that everybody gets, whichever engine made it.
            target = self.translator.translate([text])[0].text
        look = look_at(self.exact, text, target)
        return page(look, look.panels(), "attention")

    @property
    def exact(self) -> Translator:
        with self._lock:
            if self._exact is None:
                _one_thread()
                self._exact = open_translator(self.translator.bundle.path, "torch")
            return self._exact


class ServedGenerator:
    """A language model."""

    def __init__(self, name: str, generator: Generator) -> None:
        self.generator = generator
        self.facts = _facts(name, "generate", generator.bundle, "torch", context=generator.context)

    def probe(self) -> None:
        _one_thread()
        self.generator.generate(PROBE, max_tokens=1, temperature=0.0)

    def count(self, prompt: str) -> int:
        """Tokens of a prompt; a line break is one."""
        lines = prompt.split("\n")
        return sum(len(self.generator.tokenizer.encode(line)) for line in lines) + len(lines) - 1

    def write(self, prompt: str, **options: Any) -> Iterator[list[Writing]]:
        """All samples after each token; see Generator.write."""
        _one_thread()
        return self.generator.write(prompt, **options)

    def look(self, text: str, target: str | None) -> str:
        from headwise.look.page import page

        if target is not None:
            raise UsageError("a language model has no target; leave it out")
        _one_thread()
        look = self.generator.look(text)
        return page(look, look.panels(), "attention")


Served = ServedTranslator | ServedGenerator


def open_models(
    wanted: Sequence[str],
    engine: str = "auto",
    precision: str = "int8",
    tell: Callable[[str], None] = lambda line: None,
) -> list[Served]:
    """Opens models, each `DIR` or `NAME=DIR`; without any, those that came with Headwise. Each has decoded once."""
    opened: dict[str, Served] = {}
    for name, path in _named(wanted):
        if name in opened:
            raise UsageError(f"two models are called '{name}'; name them yourself: --model NAME=DIR")
        opened[name] = _open(name, path, engine, precision)
        opened[name].probe()
        tell(f"{name}: {path}, {opened[name].facts.engine}")
    return list(opened.values())


def _named(wanted: Sequence[str]) -> list[tuple[str, Path]]:
    if not wanted:
        shipped = list(shipped_directories().items())
        if not shipped:
            raise UsageError(f"no model to serve: {HOW_TO_GET_ONE}")
        return shipped
    return [_name(value) for value in wanted]


def _name(value: str) -> tuple[str, Path]:
    """A run's model is called by the name of the run."""
    given, equals, rest = value.partition("=")
    if equals and not Path(value).exists():
        if not given.strip() or len(given) > 100:
            raise UsageError(f"--model {value}: a name has 1 to 100 characters")
        return given.strip(), choose_model(rest)
    path = choose_model(value)
    resolved = path.resolve()
    return (resolved.parent.name if resolved.name == "model" else resolved.name) or "model", path


def _open(name: str, path: Path, engine: str, precision: str) -> Served:
    from headwise.bundle.directory import open_bundle

    if open_bundle(path, verify=False).family == "transformer":
        translator = open_translator(path, engine, precision=precision, scores="sentences")
        if len(translator.bundle.languages) != 2:
            raise UsageError(f"{path} does not say its two languages, so it cannot be asked for by them")
        return ServedTranslator(name, translator)
    from headwise.workflows.generate import open_generator

    return ServedGenerator(name, open_generator(path))


def _with_token_scores(translator: Translator) -> Translator:
    """The same on the same weights; the torch engine gives token scores in any case."""
    if translator.engine.name != "ctranslate2":
        return translator
    engine: Any = copy.copy(translator.engine)
    engine.scores = "tokens"
    return Translator(translator.bundle, translator.tokenizers, engine)


def _one_thread() -> None:
    """Of torch, in the thread that calls: requests are what runs in parallel, not one request's matrices."""
    import torch

    torch.set_num_threads(1)


def _facts(
    name: str,
    kind: Literal["translate", "generate"],
    bundle: Bundle,
    engine: str,
    *,
    beam: int | None = None,
    context: int | None = None,
) -> Facts:
    card = bundle.card
    about = card.get("about")
    told = about if isinstance(about, dict) else {"good_for": about} if isinstance(about, str) else {}
    return Facts(
        name=name,
        kind=kind,
        languages=tuple(bundle.languages),
        parameters=model_info(bundle.path).parameters,
        engine=engine,
        context=context,
        default_beam=beam,
        title=_text(card.get("title") or told.get("title")),
        about=_text(told.get("good_for")),
    )


def _text(value: Any) -> str | None:
    return str(value) if value else None
