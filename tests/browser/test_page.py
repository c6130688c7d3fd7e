"""Translating on the server's page, in a real Chromium and against a real server process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fixtures_page import HOSTILE, Opened

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser


def test_text_is_translated_as_it_is_typed(opened: Opened) -> None:
    opened.page.locator("#source-text").press_sequentially("two dog")
    opened.settled("zwei Hund")
    assert opened.page.inner_text("#character-number").startswith("7 / ")
    opened.page.locator("#source-text").press_sequentially(" three\n\nred fish")
    opened.settled("zwei Hund drei\n\nrot Fisch")
    opened.text("#translate-status", "Translated.")


def test_lines_that_did_not_change_are_not_asked_for_again(opened: Opened) -> None:
    asked: list[list[str]] = []
    listen = lambda request: asked.append(request.post_data_json["q"]) if request.url.endswith("/translate") else None  # noqa: E731
    opened.page.on("request", listen)
    opened.translate("two dog\nred fish")
    opened.settled("zwei Hund\nrot Fisch")
    opened.translate("two dog\nblue fish")
    opened.settled("zwei Hund\nblau Fisch")
    assert asked == [["two dog", "red fish"], ["blue fish"]]


def test_each_token_says_how_sure_the_model_was(opened: Opened) -> None:
    opened.translate("two dog")
    opened.settled("zwei Hund")
    tokens = opened.page.locator("#output .token")
    assert tokens.all_inner_texts() == ["zwei", "Hund"]
    chances = [float(token.get_attribute("data-probability") or -1) for token in tokens.all()]
    assert all(0 < chance <= 1 for chance in chances)
    opened.page.locator("#output").focus()
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("ArrowRight")
    assert opened.page.inner_text("#token-tip").startswith(f"Hund: {chances[1]:.0%}")
    opened.page.click("#tokens-box summary")
    values = opened.page.locator("#token-list .value").all_inner_texts()
    assert [value.split("%")[0] for value in values] == [f"{100 * chance:.0f}" for chance in chances]
    assert "confident" in values[0]
    opened.text("#confidence", "Confidence")


def test_tokens_are_laid_over_the_text_whatever_their_pieces_look_like(opened: Opened) -> None:
    """Spaces shown as ▁, bytes, joined lines: every character of the text is there once, in order."""
    parts = opened.page.evaluate(
        """async () => {
          const { align } = await import("./page/confidence.js");
          const token = (text, probability) => ({ text, probability });
          return [
            align("The dog.", [token("▁The", 0.9), token("▁do", 0.8), token("g", 0.7), token(".", 0.6)]),
            align("a 中 b", [
              token("a", 0.9), token("▁", 0.5), token("<0xE4>", 0.3), token("<0xB8>", 0.2), token("▁b", 0.4),
            ]),
            align("plain", []),
          ];
        }"""
    )
    assert ["".join(part["text"] for part in each) for each in parts] == ["The dog.", "a 中 b", "plain"]
    assert [(p["text"], p["probability"]) for p in parts[0] if p["text"].strip()] == [
        ("The", 0.9), ("do", 0.8), ("g", 0.7), (".", 0.6)
    ]  # fmt: skip
    assert [p["probability"] for p in parts[1] if "中" in p["text"]] == [0.2]
    assert [p["probability"] for p in parts[2]] == [None]


def test_a_translation_under_way_is_cancelled_by_escape_and_by_new_text(opened: Opened) -> None:
    held: list[Any] = []
    opened.page.route("**/translate", lambda route: held.append(route))
    opened.translate("two dog")
    run = opened.page.locator("#translate-run")
    playwright.expect(run).to_have_text("Cancel", timeout=20_000)
    with opened.page.expect_event("requestfailed") as gone:
        opened.page.keyboard.press("Escape")
    assert gone.value.url.endswith("/translate")
    opened.text("#translate-status", "Cancelled")
    playwright.expect(run).to_have_text("Translate")
    assert opened.page.locator("#output .token").count() == 0
    run.click()
    playwright.expect(run).to_have_text("Cancel")
    with opened.page.expect_event("requestfailed"):
        opened.translate("red fish")
    opened.page.unroute("**/translate")
    opened.translate("blue fish")
    opened.settled("blau Fisch")


def test_the_button_cancels_too(opened: Opened) -> None:
    opened.page.route("**/translate", lambda route: None)
    opened.translate("two dog")
    run = opened.page.locator("#translate-run")
    playwright.expect(run).to_have_text("Cancel", timeout=20_000)
    with opened.page.expect_event("requestfailed"):
        run.click()
    opened.page.unroute("**/translate")
    run.click()
    opened.settled("zwei Hund")


def test_alternatives_come_when_asked_for_and_one_can_be_taken(opened: Opened) -> None:
    opened.translate("two dog")
    opened.settled("zwei Hund")
    assert opened.page.locator(".alternatives li").count() == 0
    opened.page.click("#alternatives-box summary")
    opened.page.wait_for_selector(".alternatives li")
    other = opened.page.locator(".alternatives li > span").first.inner_text()
    assert other not in ("", "zwei Hund")
    opened.page.locator(".alternatives button").first.click()
    opened.settled(other)
    assert "zwei Hund" in opened.page.locator(".alternatives li > span").all_inner_texts()


def test_a_glossary_term_is_used_and_remembered(opened: Opened) -> None:
    opened.translate("two dog")
    opened.settled("zwei Hund")
    opened.page.click("#glossary-box summary")
    opened.page.click("#glossary-add")
    opened.page.keyboard.type("dog")
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.type("Katze")
    opened.text("#output", "Katze")
    opened.text("#glossary-title", "Glossary (1)")
    opened.page.reload()
    opened.text("#glossary-title", "Glossary (1)")
    opened.text("#output", "Katze")
    opened.page.click("#glossary-box summary")
    opened.page.get_by_role("button", name="Remove the term dog").click()
    opened.settled("zwei Hund")


def test_too_long_a_text_is_refused_before_it_is_sent(opened: Opened) -> None:
    limit = int(opened.page.inner_text("#character-number").split("/")[1].replace(",", ""))
    opened.requests.clear()
    opened.translate("a" * (limit + 1))
    opened.text("#translate-problem", f"at most {limit:,} characters")
    assert opened.page.locator("#translate-run").is_disabled()
    assert not [url for url in opened.requests if url.endswith("/translate")]


def test_what_the_server_refuses_is_one_clear_line(opened: Opened) -> None:
    opened.expected.append("status of 400")
    error = json.dumps({"error": f"no model for that {HOSTILE}"})
    answer = {"status": 400, "content_type": "application/json", "body": error}
    opened.page.route("**/translate", lambda route: route.fulfill(**answer))
    opened.translate("two dog")
    opened.text("#translate-problem", f"no model for that {HOSTILE}")
    opened.page.unroute("**/translate")
    opened.page.click("#translate-run")
    opened.settled("zwei Hund")
    assert opened.page.inner_text("#translate-problem") == ""


def test_a_busy_server_is_asked_again_when_it_said(opened: Opened) -> None:
    opened.expected.append("status of 429")
    answer = {"status": 429, "headers": {"Retry-After": "1"}, "content_type": "application/json"}
    opened.page.route("**/translate", lambda route: route.fulfill(**answer, body='{"error": "too busy."}'), times=1)
    opened.translate("two dog")
    opened.text("#translate-problem", "too busy. Trying again in 1 s.")
    opened.settled("zwei Hund")


def test_a_server_that_is_gone_is_told_in_one_line_and_asked_again(opened: Opened) -> None:
    opened.expected += ["net::ERR_FAILED", "Failed to load resource"]
    opened.page.route("**/translate", lambda route: route.abort())
    opened.translate("two dog")
    opened.text("#translate-problem", "The server does not respond.")
    opened.page.unroute("**/translate")
    opened.page.click("#translate-run")
    opened.settled("zwei Hund")
