"""The models by name and by what they do; a wrong choice is told with the right ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headwise.serving.errors import Refusal
from headwise.serving.languages import by_script
from headwise.serving.schemas import Detected
from headwise.serving.served_models import GenerationModel, Model, TranslationModel


class Shelf:
    """What a server has."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = {model.facts.name: model for model in models}
        self.translators = [model for model in models if isinstance(model, TranslationModel)]
        self.generators = [model for model in models if isinstance(model, GenerationModel)]

    def by_name(self, name: str) -> Model:
        if name not in self.models:
            raise Refusal(404, f"there is no such model; there are {_listed(self.models)}")
        return self.models[name]

    def translator(self, source: str, target: str, name: str | None = None) -> TranslationModel:
        """Of a pair of languages; `source` is not 'auto'."""
        chosen = [self.by_name(name)] if name is not None else self.translators
        for model in chosen:
            if isinstance(model, TranslationModel) and model.facts.languages == (source, target):
                return model
        pairs = _listed(" to ".join(model.facts.languages) for model in self.translators)
        raise Refusal(400, f"no such pair of languages{' in this model' if name else ''}; there are {pairs}")

    def generator(self, name: str | None) -> GenerationModel:
        if name is None:
            if not self.generators:
                raise Refusal(400, "this server has no language model")
            return self.generators[0]
        model = self.by_name(name)
        if not isinstance(model, GenerationModel):
            raise Refusal(400, f"this model translates; those that write are {_listed(self.writers)}")
        return model

    def any(self, name: str | None) -> Model:
        """By name, else the first."""
        return self.by_name(name) if name is not None else next(iter(self.models.values()))

    @property
    def writers(self) -> list[str]:
        return [model.facts.name for model in self.generators]

    def sources(self, target: str | None = None) -> list[str]:
        """Languages that are translated from, to `target` if given."""
        pairs = [model.facts.languages for model in self.translators]
        return list(dict.fromkeys(pair[0] for pair in pairs if target in (None, pair[1])))

    def targets(self, source: str) -> list[str]:
        pairs = [model.facts.languages for model in self.translators]
        return list(dict.fromkeys(pair[1] for pair in pairs if pair[0] == source))

    def detect(self, text: str, among: Sequence[str] | None = None) -> list[Detected]:
        """The languages of this server that the text may be in, likeliest first, by its script."""
        languages = self.sources() if among is None else among
        found = by_script(text, languages)
        if languages and not found:
            raise Refusal(
                400,
                f"detection is not supported between {_listed(languages)}: give the source language instead of auto",
            )
        return [Detected(confidence=round(share, 1), language=language) for language, share in found]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
