"""Classifying and filling gaps on the server's page, in a real Chromium; views come with the models that they need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures_page import Opened
from running import serving

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def encoders(classifier_model: Path, filler_model: Path) -> Iterator[str]:
    with serving("--model", f"kinds={classifier_model}", "--model", f"gaps={filler_model}") as running:
        yield running.url


def opened_at(browser: Any, server: str, view: str, **options: Any) -> Opened:
    opened = Opened(browser, server, view, **options)
    playwright.expect(opened.page.locator(f"#{view}")).to_be_visible()
    return opened


def test_a_text_is_classified_by_keyboard_with_its_probabilities_as_bars(browser: Any, encoders: str) -> None:
    opened = opened_at(browser, encoders, "classify")
    page = opened.page
    page.fill("#classify-text", "dog cat horse")
    page.keyboard.press("Control+Enter")
    opened.text("#classify-answers .verdict-label", "animals")
    assert page.locator("#classify-answers .bars li").count() == 3
    widths = page.eval_on_selector_all(".bars .meter span", "bars => bars.map(bar => bar.offsetWidth)")
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 100 > widths[-1]
    page.keyboard.press("Escape")
    page.focus("#tab-classify")
    page.keyboard.press("ArrowRight")
    playwright.expect(page.locator("#tab-fill")).to_be_focused()
    page.select_option("#language", "zh")
    opened.text("#tab-classify", "分类")
    assert opened.problems == []


def test_a_word_is_hidden_by_a_click_and_filled_by_another_on_a_phone(browser: Any, encoders: str) -> None:
    opened = opened_at(browser, encoders, "fill", viewport={"width": 390, "height": 800}, locale="zh-CN")
    page = opened.page
    playwright.expect(page.locator("#tab-fill")).to_be_in_viewport(ratio=1)
    opened.text("#fill-answers", "每个空位的候选词")
    page.fill("#fill-text", "dog cat horse bird fish")
    page.locator("#fill-words button", has_text="horse").click()
    assert page.input_value("#fill-text") == "dog cat [MASK] bird fish"
    opened.text("#fill-answers h3", "第 1 个空位")
    assert page.locator("#fill-answers .bars button").first.inner_text() == "horse"
    page.locator("#fill-answers .bars button").first.click()
    assert page.input_value("#fill-text") == "dog cat horse bird fish"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.problems == []


def test_a_server_without_such_models_neither_offers_nor_loads_the_views(opened: Opened) -> None:
    assert opened.page.is_hidden("#tab-classify")
    assert opened.page.is_hidden("#tab-fill")
    assert not [url for url in opened.requests if url.endswith(("classify.js", "fill.js", "asking.js"))]
