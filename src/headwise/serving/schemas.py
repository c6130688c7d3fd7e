"""Bodies of requests and answers. Bounds stand here, so that they are checked, and told, in one place."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from headwise.serving import limits

Language = Annotated[str, StringConstraints(min_length=1, max_length=20)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Text = Annotated[str, StringConstraints(max_length=limits.MAX_TEXT)]
Term = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_TERM)]
Stop = Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_STOP)]


def _whole(value: Any) -> Any:
    """1.0 is a whole number in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Seed = Annotated[Whole, Field(ge=-(2**63), lt=2**63)]


class Question(BaseModel):
    """A field that is not known is an error: a misspelt one would be ignored in silence."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class TranslateQuestion(Question):
    q: Text | Annotated[list[Text], Field(max_length=limits.MAX_TEXTS)] = Field(
        description=f"Text, or texts; together at most {limits.MAX_TEXT:,} characters."
    )
    source: Language = Field("auto", description="Language code, or auto where the script of the text tells it.")
    target: Language
    format: Literal["text"] = Field("text", description="Other formats are not supported.")
    alternatives: Whole = Field(0, ge=0, le=limits.MAX_ALTERNATIVES, description="Further translations of each text.")
    api_key: str | None = Field(None, max_length=1000)
    secret: str | None = Field(None, max_length=1000, description="Sent by some clients; not used.")
    model: Name | None = Field(None, description="Model by name, where several translate this pair.")
    beam: Annotated[Whole, Field(ge=1, le=limits.MAX_BEAM)] | None = Field(
        None, description="Hypotheses kept; without it, the model's."
    )
    glossary: Annotated[dict[Term, Term], Field(max_length=limits.MAX_TERMS)] | None = Field(
        None, description="Source terms and the target terms that must be used for them."
    )
    protect: bool = Field(False, description="Keep placeholders, tags, addresses and numbers as they are.")
    details: bool = Field(False, description="Tell score, confidence and tokens of each translation.")

    @model_validator(mode="after")
    def _bounded(self) -> TranslateQuestion:
        if not isinstance(self.q, str) and sum(map(len, self.q)) > limits.MAX_TEXT:
            raise ValueError(f"all texts together may have {limits.MAX_TEXT:,} characters")
        if self.beam is not None and self.beam <= self.alternatives:
            raise ValueError(f"{self.alternatives} alternatives need a beam of at least {self.alternatives + 1}")
        return self


class TranslateForm(Question):
    """What an HTML form, or a client that sends one, can ask."""

    q: Text
    source: Language = "auto"
    target: Language
    format: Literal["text"] = "text"
    alternatives: int = Field(0, ge=0, le=limits.MAX_ALTERNATIVES)
    api_key: str = Field("", max_length=1000)
    secret: str = Field("", max_length=1000)


class DetectForm(Question):
    q: Text
    api_key: str = Field("", max_length=1000)


class DetectQuestion(Question):
    q: Text
    api_key: str | None = Field(None, max_length=1000)


class LookQuestion(Question):
    text: Annotated[str, StringConstraints(min_length=1, max_length=limits.MAX_LOOK, pattern=r"\S")]
    target: Annotated[str, StringConstraints(max_length=limits.MAX_LOOK)] | None = Field(
        None, description="Look at this translation; without it, at the model's own."
    )
    model: Name | None = None


class GenerateQuestion(Question):
    prompt: Text = ""
    model: Name | None = None
    max_tokens: Whole = Field(200, ge=1, le=limits.MAX_TOKENS)
    temperature: float = Field(1.0, ge=0, le=100, allow_inf_nan=False, description="0 takes the likeliest token.")
    top_k: Whole = Field(0, ge=0, le=10**9, description="Choose among the k likeliest tokens; 0 is all.")
    top_p: float = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    min_p: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    repetition_penalty: float = Field(1.0, ge=0.01, le=100, allow_inf_nan=False)
    stop: Annotated[list[Stop], Field(max_length=limits.MAX_STOPS)] = []
    seed: Seed | None = Field(None, description="The same seed gives the same text; without it, one is drawn.")
    samples: Whole = Field(1, ge=1, le=limits.MAX_SAMPLES)
    stream: bool = Field(False, description="Server-sent events, one sample only.")

    @model_validator(mode="after")
    def _bounded(self) -> GenerateQuestion:
        if self.stream and self.samples > 1:
            raise ValueError("a stream has one sample")
        if self.samples * self.max_tokens > limits.MAX_WRITTEN:
            raise ValueError(f"samples × max_tokens may be {limits.MAX_WRITTEN:,}")
        return self


# ---- answers


class Problem(BaseModel):
    error: str


class Token(BaseModel):
    text: str
    probability: float


class Details(BaseModel):
    score: float
    confidence: float
    stopped: Literal["eos", "length", "loop"]
    model: str
    sentences: int
    tokens: list[Token]


class Detected(BaseModel):
    confidence: float
    language: str


class TranslateAnswer(BaseModel):
    translatedText: str | list[str]  # noqa: N815 (LibreTranslate's name)
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    details: list[Details] | None = None


class Sample(BaseModel):
    text: str
    tokens: int
    stopped: Literal["length", "stop"]


class GenerateAnswer(BaseModel):
    model: str
    samples: list[Sample]


class ModelFacts(BaseModel):
    name: str
    kind: Literal["translate", "generate"]
    languages: list[str]
    parameters: int
    engine: str
    context: int | None
    title: str | None
    about: str | None
    default_beam: int | None


class ModelsAnswer(BaseModel):
    models: list[ModelFacts]


class LanguageFacts(BaseModel):
    code: str
    name: str
    targets: list[str]


class HealthAnswer(BaseModel):
    status: Literal["ok", "ready", "not ready"]
    models: dict[str, str] | None = None


class RunFacts(BaseModel):
    name: str
    state: Literal["running", "finished", "stopped"]
    step: int
    steps: int | None
    updated: float


class RunsAnswer(BaseModel):
    runs: list[RunFacts]


class RunAnswer(BaseModel):
    name: str
    state: Literal["running", "finished", "stopped"]
    recipe: str
    records: list[dict[str, Any]]
    next: int
