"""Readiness is a real decode: a hanging engine is noticed, a busy one is still ready."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from running import RIGGED, Running, serving

WITHIN = 2.0  # seconds, as documented: what an orchestrator may rely on


def test_a_deadlocked_engine_is_not_ready_in_time_and_ready_again_when_it_recovers(held: Running, flag: Path) -> None:
    assert held.ask("GET", "/health/ready").json == {"status": "ready", "models": {"rigged": "ready"}}
    flag.touch()
    began, status = time.monotonic(), 200
    while status == 200 and time.monotonic() - began < 30:
        answer = held.ask("GET", "/health/ready")
        status = answer.status
    assert time.monotonic() - began < WITHIN + 1  # one second more for a busy machine
    assert status == 503
    assert answer.json["status"] == "not ready"
    assert answer.json["models"]["rigged"] != "ready"
    assert held.ask("GET", "/health/live").json == {"status": "ok"}
    flag.unlink()
    while held.ask("GET", "/health/ready").status != 200:
        pass
    assert held.translate("red dog").json == {"translatedText": "rot Hund"}


def test_torch_that_hangs_is_noticed_although_the_fast_engine_answers(word_model: Path) -> None:
    """The lane for glossaries has been in use; nobody asks for it when it hangs."""
    with serving(word_model, "torch", "", script=RIGGED) as running:
        assert running.translate("red dog", glossary={"dog": "Vogel"}).status == 200
        assert running.ask("GET", "/health/ready").status == 200
        with pytest.raises(TimeoutError):
            running.ask(
                "POST",
                "/translate",
                {"q": "red " * 8 + "dog", "source": "en", "target": "de", "glossary": {"dog": "Vogel"}},
                timeout=2,
            )
        while running.ask("GET", "/health/ready").status == 200:
            pass
        assert running.translate("red dog").status == 200


def test_torch_that_fails_is_noticed_although_the_fast_engine_answers(word_model: Path, flag: Path) -> None:
    with serving(word_model, "fail", flag, script=RIGGED) as running:
        glossary = {"glossary": {"dog": "Vogel"}}
        assert running.translate("red dog", **glossary).status == 200
        flag.touch()
        assert running.translate("red dog", **glossary).status == 503
        assert running.ask("GET", "/health/ready").json["models"] == {"rigged": "the engine fails: RuntimeError"}
        flag.unlink()
        while running.ask("GET", "/health/ready").status != 200:
            pass
        assert running.translate("red dog", **glossary).status == 200
        assert "broken" not in "".join(running.log)


def test_a_request_that_is_not_answered_in_time_gets_504(language_model: Path) -> None:
    with serving("--model", f"letters={language_model}", "--timeout", "0.3") as running:
        body = {"prompt": "the ", "max_tokens": 2048, "samples": 4}
        assert running.ask("POST", "/generate", body).status == 504
        events = running.ask("POST", "/generate", {"prompt": "the ", "max_tokens": 2048, "stream": True}).body
        assert b'{"error":"the answer was not ready in time' in events
        while running.metric("headwise_active_jobs"):
            pass  # the work has stopped too


def test_metrics_count_what_was_done(server: Running) -> None:
    before = server.metric("headwise_requests_total", route="/translate", status="200")
    tokens = server.metric("headwise_tokens_total", model="words")
    server.translate("red dog")
    assert server.metric("headwise_requests_total", route="/translate", status="200") == before + 1
    assert server.metric("headwise_tokens_total", model="words") > tokens
    assert server.metric("headwise_request_seconds_count", route="/translate") >= before + 1
    assert b"Hund" not in server.ask("GET", "/metrics").body
