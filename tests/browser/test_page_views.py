"""Looking inside, writing and following a run on the server's page, in a real Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures_page import FAILED, HOSTILE, Opened, record, validation

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser


def test_the_attention_of_the_translation_is_shown_and_its_script_runs(opened: Opened) -> None:
    opened.translate("two dog\nred fish")
    opened.settled("zwei Hund\nrot Fisch")
    opened.page.click("#translate-look")
    assert opened.page.get_attribute("#look-place iframe", "sandbox") == "allow-scripts"
    frame = opened.page.frame_locator("#look-place iframe")
    frame.locator("html[data-shown]").wait_for(state="attached")
    assert frame.locator("#source-text").inner_text() == "two dog"
    assert frame.locator("#target-text").inner_text() == "zwei Hund"
    frame.locator("label:has(#view-cross)").click()
    frame.locator("html[data-shown^=cross]").wait_for(state="attached")
    opened.page.select_option("#look-what", label="red fish")
    playwright.expect(frame.locator("#target-text")).to_have_text("rot Fisch", timeout=20_000)
    opened.page.select_option("#theme", "dark")
    playwright.expect(frame.locator("html")).to_have_attribute("data-theme", "dark", timeout=20_000)


def test_without_a_translation_the_look_view_says_what_to_do(opened: Opened) -> None:
    opened.page.click("#tab-look")
    opened.text("#look-empty", "Nothing to look at yet")
    opened.page.click("#look-empty button")
    assert opened.page.is_visible("#source-text")


def test_generated_text_streams_goes_on_and_is_cleared(opened: Opened) -> None:
    page = opened.page
    page.click("#tab-generate")
    page.fill("#prompt", "the quick")
    page.fill("#max-tokens", "12")
    page.fill("#seed", "7")
    page.keyboard.press("Control+Enter")
    opened.text("#generate-status", "Done")
    first = page.locator("#generated .written").inner_text()
    assert page.locator("#generated .given").inner_text() == "the quick"
    assert first
    page.click("#generate-run")
    page.wait_for_selector("#generate-continue:not([disabled])")
    assert page.locator("#generated .written").inner_text() == first, "the same seed gives the same text"
    page.click("#generate-continue")
    page.wait_for_function("n => document.querySelector('.written').textContent.length > n", arg=len(first))
    opened.text("#generate-status", "Done")
    assert page.locator("#generated .written").inner_text().startswith(first)
    page.click("#generate-clear")
    assert page.locator("#generated .written").count() == 0


def test_text_that_is_being_written_can_be_stopped(opened: Opened) -> None:
    page = opened.page
    page.click("#tab-generate")
    page.fill("#max-tokens", "2048")
    page.click("#generate-run")
    page.wait_for_function("() => document.querySelector('.written')?.textContent.length > 3")
    with page.expect_event("requestfailed") as gone:
        page.click("#generate-run")
    assert gone.value.url.endswith("/generate")
    opened.text("#generate-status", "Stopped.")
    written = page.locator("#generated .written").inner_text()
    playwright.expect(page.locator("#generate-continue")).to_be_enabled()
    page.fill("#max-tokens", "5")
    page.click("#generate-continue")
    opened.text("#generate-status", "Done")
    assert page.locator("#generated .written").inner_text().startswith(written)


def test_a_live_run_is_followed_while_its_log_grows(opened: Opened, runs: Path) -> None:
    page = opened.page
    log = runs / "live" / "log.jsonl"
    page.click("#tab-training")
    page.click("[data-run=live]")
    opened.text("#run-name", "live")
    opened.text("#facts", "100 / 400")
    curve = page.locator("[data-chart=loss] .plot path.one")
    before = curve.get_attribute("d") or ""
    assert before.count("L") == 9
    assert page.locator("[data-chart=scores]").is_hidden()
    with open(log, "a", encoding="utf-8") as stream:
        stream.write(record(110) + record(120)[:40])
    opened.text("#facts", "110 / 400")
    with open(log, "a", encoding="utf-8") as stream:
        stream.write(record(120)[40:] + validation(120, HOSTILE))
    opened.text("#run-samples", HOSTILE)
    opened.text("#facts", "120 / 400")
    opened.text("#facts", "31.4")
    assert (curve.get_attribute("d") or "").count("L") == 11
    assert page.locator("[data-chart=scores] .plot circle").count() == 2
    page.locator("[data-chart=loss] .plot").focus()
    page.keyboard.press("ArrowLeft")
    tip = page.inner_text("[data-chart=loss] .chart-tip")
    assert "120 updates" in tip
    assert "validation 2.5" in tip
    page.check("input[name=axis][value=log]", force=True)
    assert (curve.get_attribute("d") or "").count("L") == 11
    assert page.evaluate("window.hit") is None


def test_a_run_that_ended_shows_its_figures_and_its_recipe(opened: Opened) -> None:
    page = opened.page
    page.click("#tab-training")
    page.click("[data-run=ended]")
    opened.text("#run-name", "ended")
    opened.text("#run-state", "finished")
    opened.text("#facts", "3,600 tokens/s")
    opened.text("#facts", "Accuracy, %87.5")
    assert page.locator("[data-chart=scores] .chart-legend li").all_inner_texts() == ["Accuracy, %", "Macro-F1, %"]
    page.click("#recipe-box summary")
    opened.text("#recipe", "<b>not bold</b>")


def test_a_run_that_did_not_learn_is_called_so_and_says_what_to_change(opened: Opened) -> None:
    opened.page.click("#tab-training")
    opened.page.click("[data-run=failed]")
    opened.text("#run-name", "failed")
    opened.text("#run-state", "did not learn")
    opened.text("#run-verdict", FAILED)
