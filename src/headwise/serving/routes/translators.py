"""The translation models of a server, found by a pair of languages or by the language of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from headwise.serving.errors import RequestError
from headwise.serving.language_detection import LEAST_CONFIDENCE, Detection, detect_language
from headwise.serving.model_index import ModelIndex, listed
from headwise.serving.routes.translation_model import TranslationModel
from headwise.tasks.translate import TASK


class Translators:
    """Finds the translation models of a server by their languages."""

    def __init__(self, index: ModelIndex) -> None:
        self.index = index
        self.models = cast(list[TranslationModel], index.of_task(TASK.name))

    def find(self, source: str, target: str, name: str | None = None) -> TranslationModel:
        """Finds the model of a pair of languages, or checks that the one with this name translates the pair."""
        chosen = self.models if name is None else [m for m in self.models if m is self.index.by_name(name)]
        for model in chosen:
            if model.facts.languages == (source, target):
                return model
        self._check_known(source, target)
        pairs = listed(" to ".join(model.facts.languages) for model in self.models)
        raise RequestError(400, f"no such pair of languages{' in this model' if name else ''}; there are {pairs}")

    def _check_known(self, *codes: str) -> None:
        """Raises for a language that no model knows, in LibreTranslate's words."""
        for code in codes:
            if code not in self.languages():
                raise RequestError(400, f"{code} is not supported")

    def sources(self) -> list[str]:
        """Lists the source languages."""
        pairs = [model.facts.languages for model in self.models]
        return list(dict.fromkeys(pair[0] for pair in pairs))

    def languages(self) -> list[str]:
        """Lists the languages of all models, sources and targets."""
        return list(dict.fromkeys(code for model in self.models for code in model.facts.languages))

    def targets(self, source: str) -> list[str]:
        """Lists the languages that `source` can be translated to."""
        pairs = [model.facts.languages for model in self.models]
        return list(dict.fromkeys(pair[1] for pair in pairs if pair[0] == source))

    def detect(self, text: str) -> list[Detection]:
        """Ranks all languages of the server, sources and targets, for a text."""
        found = detect_language(text, self.languages())
        if not found:
            raise RequestError(400, f"detection does not know {listed(self.languages())}: give the source language")
        return found

    def source_of(self, texts: Sequence[str], target: str, name: str | None) -> tuple[str, list[Detection]]:
        """Finds the language of all texts together, and the confidence for each; refuses where it is uncertain."""
        chosen = self.models if name is None else [m for m in self.models if m is self.index.by_name(name)]
        sources = [model.facts.languages[0] for model in chosen if model.facts.languages[1] == target]
        if not sources:
            self._check_known(target)
            raise RequestError(400, f"no model translates to {target}; ask /languages for the list")
        if not any(character.isalpha() for text in texts for character in text):
            return sources[0], [Detection(sources[0], 0.0) for _ in texts]  # numbers and signs are in any language
        language = _only_certain(self.detect("\n".join(texts)), "the text", target, sources)
        found = []
        for number, text in enumerate(texts, start=1):
            ranked = self.detect(text)
            if ranked[0].language != language and ranked[0].confidence >= LEAST_CONFIDENCE:
                _only_certain(ranked, f"text {number}", target, [language])
            found.append(Detection(language, dict(ranked)[language]))
        return language, found


def _only_certain(ranked: Sequence[Detection], what: str, target: str, sources: Sequence[str]) -> str:
    """Returns the likeliest language if it is certain enough and one of `sources`; else raises with the reason."""
    language, confidence = ranked[0]
    tied = [other for other in ranked if other.confidence == confidence]
    if confidence < LEAST_CONFIDENCE or len(tied) > 1:
        guess = f"likeliest is {language}, with a confidence of {confidence:.0f} of 100"
        raise RequestError(400, f"the language of {what} is uncertain ({guess}); give source instead of auto")
    if language not in sources:
        raise RequestError(
            400,
            f"{what} seems to be in {language} (confidence {confidence:.0f} of 100), not in {' or '.join(sources)}: "
            f"it is not translated to {target}; give source instead of auto if that is wrong",
        )
    return language
