"""Unchanged clients from PyPI, and the server's own routes."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest
from fixtures_models import WORDS, english_sentences
from libretranslatepy import LibreTranslateAPI
from running import KEY, Running, serving

from headwise.workflows.generate import open_generator
from headwise.workflows.translate import open_translator


@pytest.fixture
def openai_client(server: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none needed", max_retries=0)


def test_the_libretranslate_client_translates(server: Running, word_model: Path) -> None:
    client = LibreTranslateAPI(server.url)
    sentences = english_sentences(5, seed=3)
    offline = [one.text for one in open_translator(word_model).translate(sentences)]
    assert [client.translate(sentence, "en", "de") for sentence in sentences] == offline
    assert client.translate("red dog", "auto", "de") == "rot Hund"
    assert client.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]
    assert [one["language"] for one in client.detect("red dog")] == ["en", "de"]


def test_the_libretranslate_client_sends_its_key_in_the_form(word_model: Path) -> None:
    with serving("--model", word_model, "--api-key", KEY) as running:
        assert LibreTranslateAPI(running.url, KEY).translate("red dog", "en", "de") == "rot Hund"
        refused = running.ask("POST", "/translate", b"q=red&source=en&target=de&api_key=wrong",
                              {"Content-Type": "application/x-www-form-urlencoded"})  # fmt: skip
        assert refused.status == 401
        assert not running.imported("libtorch"), "a server that only translates has loaded torch"


def test_the_openai_client_completes(openai_client: openai.OpenAI, language_model: Path) -> None:
    offline = open_generator(language_model).generate("the ", samples=2, max_tokens=12, temperature=0.7, seed=5)
    completion = openai_client.completions.create(
        model="letters", prompt="the ", max_tokens=12, temperature=0.7, seed=5, n=2
    )
    assert [choice.text for choice in completion.choices] == [one.text for one in offline]
    assert [choice.finish_reason for choice in completion.choices] == ["length", "length"]
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (4, 24)
    assert {model.id for model in openai_client.models.list()} >= {"letters"}


def test_the_openai_client_streams(openai_client: openai.OpenAI, language_model: Path) -> None:
    offline = open_generator(language_model).generate("the ", max_tokens=20, seed=7, stop="o")[0]
    stream = openai_client.completions.create(
        model="letters",
        prompt="the ",
        max_tokens=20,
        seed=7,
        stop="o",
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == offline.text
    ends = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason]
    assert ends == [offline.stopped]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == len(offline.ids)


def test_the_openai_client_gets_several_prompts_in_order(openai_client: openai.OpenAI, language_model: Path) -> None:
    generator = open_generator(language_model)
    prompts = ["the ", "dog"]
    completion = openai_client.completions.create(model="letters", prompt=prompts, max_tokens=5, seed=1, echo=True)
    offline = [prompt + generator.generate(prompt, max_tokens=5, seed=1)[0].text for prompt in prompts]
    assert [choice.text for choice in completion.choices] == offline


@pytest.mark.parametrize(
    "field", [{"logprobs": 2}, {"best_of": 3}, {"presence_penalty": 0.5}, {"logit_bias": {"5": 1}}, {"suffix": "end"}]
)
def test_the_openai_client_is_told_what_is_not_supported(
    openai_client: openai.OpenAI, field: dict[str, object]
) -> None:
    with pytest.raises(openai.BadRequestError, match=f"{next(iter(field))} is not supported"):
        openai_client.completions.create(model="letters", prompt="the ", **field)  # type: ignore[call-overload]


def test_the_openai_client_is_told_that_a_model_is_missing(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="letters"):
        openai_client.completions.create(model="gpt-9", prompt="the ")


def test_the_openai_client_is_told_that_these_models_do_not_chat(openai_client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="do not chat: use /v1/completions"):
        openai_client.chat.completions.create(model="letters", messages=[{"role": "user", "content": "Hello"}])


def test_the_openai_client_shows_what_is_refused_before_a_route_is_reached(
    openai_client: openai.OpenAI, word_model: Path
) -> None:
    with pytest.raises(openai.APIStatusError, match="at most 262,144 bytes"):
        openai_client.embeddings.create(model="vectors", input="a" * 300_000)
    with pytest.raises(openai.PermissionDeniedError, match="the Host header does not name this server"):
        openai_client.with_options(default_headers={"Host": "evil.example"}).models.list()
    with serving("--model", word_model, "--api-key", KEY) as running:
        client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="another", max_retries=0)
        with pytest.raises(openai.AuthenticationError, match="a valid API key is needed"):
            client.models.list()


def test_texts_are_translated_sentence_by_sentence_with_their_spacing(server: Running) -> None:
    answer = server.translate(["red dog\n\n  blue cat\n", "", "one"]).json
    assert answer == {"translatedText": ["rot Hund\n\n  blau Katze\n", "", "eins"]}


def test_alternatives_details_and_detection_come_when_asked_for(server: Running, word_model: Path) -> None:
    answer = server.translate("red dog", source="auto", alternatives=2, beam=4, details=True).json
    offline = open_translator(word_model).translate(["red dog"], beam=4, n_best=3)[0]
    assert answer["translatedText"] == "rot Hund"
    assert answer["alternatives"] == [one.text for one in offline.alternatives]
    assert answer["detectedLanguage"]["language"] == "en"
    assert 50 <= answer["detectedLanguage"]["confidence"] <= 100
    (details,) = answer["details"]
    assert [token["text"] for token in details["tokens"]] == list(offline.tokens)
    assert all(0.9 < token["probability"] <= 1 for token in details["tokens"])
    assert details["confidence"] == pytest.approx(offline.confidence, abs=1e-3)
    assert (details["model"], details["sentences"], details["stopped"]) == ("words", 1, "eos")


def test_a_glossary_and_protected_spans_are_kept(server: Running) -> None:
    assert "Vogel" in server.translate("red dog", glossary={"dog": "Vogel"}).json["translatedText"].split()
    assert WORDS["dog"] in server.translate("red dog", protect=True).json["translatedText"]


def test_a_language_model_generates_the_same_text_as_offline(server: Running, language_model: Path) -> None:
    offline = open_generator(language_model).generate("the ", samples=2, max_tokens=9, seed=3, top_k=5)
    answer = server.ask(
        "POST", "/generate", {"prompt": "the ", "samples": 2, "max_tokens": 9, "seed": 3, "top_k": 5}
    ).json
    told = [{"text": one.text, "tokens": len(one.ids), "stopped": one.stopped} for one in offline]
    assert answer == {"model": "letters", "samples": told}


def test_a_temperature_too_small_to_divide_by_is_greedy(server: Running) -> None:
    asked = {"prompt": "the ", "max_tokens": 9, "min_p": 0.5, "repetition_penalty": 32.0}
    texts = [server.ask("POST", "/generate", {**asked, "temperature": t}).json["samples"] for t in (5e-225, 1e-30, 0)]
    assert texts[0] == texts[1] == texts[2]


def test_look_gives_a_page_that_may_run_its_own_script_only(server: Running) -> None:
    answer = server.ask("POST", "/look", {"text": "red dog"})
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert "sandbox allow-scripts" in policy
    assert b"rot Hund" in answer.body
    reading = server.ask("POST", "/look", {"text": "the dog", "model": "letters"})
    assert b"Causal self-attention" in reading.body
    assert server.ask("POST", "/look", {"text": "a", "target": "b", "model": "letters"}).status == 400


def test_every_mistake_is_one_clear_line(server: Running) -> None:
    cases = [
        ({"q": "a", "source": "de", "target": "en"}, 400, "no such pair of languages; there are en to de"),
        ({"q": "a", "source": "en", "target": "de", "model": "none"}, 404, "there is no such model; there are words"),
        ({"q": "a", "source": "en", "target": "de", "bean": 3}, 400, "bean: Extra inputs are not permitted"),
        ({"q": "a", "source": "en", "target": "de", "beam": 11}, 400, "beam: Input should be less than or equal to 10"),
        ({"q": "a", "source": "en", "target": "de", "beam": 2, "alternatives": 5}, 400, "5 alternatives need a beam"),
        ({"q": ["a" * 6000, "b" * 6000], "source": "en", "target": "de"}, 400, "all texts together"),
        ({"q": "a" * 10001, "source": "en", "target": "de"}, 400, "at most 10000 characters"),
        ({"source": "en", "target": "de"}, 400, "Invalid request: missing q parameter"),
    ]  # fmt: skip
    for body, status, part in cases:
        answer = server.ask("POST", "/translate", body)
        assert (answer.status, part in answer.json["error"]) == (status, True), answer.json
    assert server.ask("POST", "/translate", b"q=a", {"Content-Type": "text/plain"}).status == 415
    assert server.ask("POST", "/translate", b"{", {"Content-Type": "application/json"}).status == 400
    assert server.ask("GET", "/nowhere").json == {"error": "Not Found"}
    assert server.ask("DELETE", "/translate").status == 405
