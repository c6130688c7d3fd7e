"""Classifying, filling gaps and searching on the server's page, and model cards; views come with their models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fixtures_page import HOSTILE, Opened
from running import serving

from headwise.workflows.load import load

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser


def opened_at(browser: Any, server: str, view: str, **options: Any) -> Opened:
    opened = Opened(browser, server, view, **options)
    playwright.expect(opened.page.locator(f"#{view}")).to_be_visible()
    return opened


def test_a_text_is_classified_by_keyboard_with_its_probabilities_as_bars(browser: Any, task_server: str) -> None:
    opened = opened_at(browser, task_server, "classify")
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


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_a_word_is_hidden_by_a_click_and_filled_by_another_on_a_phone(
    browser: Any, task_server: str, locale: str
) -> None:
    opened = opened_at(browser, task_server, "fill", viewport={"width": 390, "height": 800}, locale=locale)
    page, zh = opened.page, locale == "zh-CN"
    playwright.expect(page.locator("#tab-fill")).to_be_in_viewport(ratio=1)
    opened.text("#fill-answers", "每个空位的候选词" if zh else "What may stand in each gap")
    page.fill("#fill-text", "dog cat horse bird fish")
    page.locator("#fill-words button", has_text="horse").click()
    assert page.input_value("#fill-text") == "dog cat [MASK] bird fish"
    opened.text("#fill-answers h3", "第 1 个空位" if zh else "Gap 1")
    assert page.locator("#fill-answers .bars button").first.inner_text() == "horse"
    page.locator("#fill-answers .bars button").first.click()
    assert page.input_value("#fill-text") == "dog cat horse bird fish"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.problems == []


@pytest.mark.parametrize("view", ["classify", "fill", "transcribe", "search", "training"])
def test_the_open_tab_is_seen_whole_on_a_phone(browser: Any, task_server: str, view: str) -> None:
    opened = opened_at(browser, task_server, view, viewport={"width": 390, "height": 800})
    playwright.expect(opened.page.locator(f"#tab-{view}")).to_be_in_viewport(ratio=0.99)
    assert opened.page.evaluate("scrollY") == 0


def test_each_view_looks_inside_at_its_own_text(browser: Any, task_server: str) -> None:
    opened = opened_at(browser, task_server, "classify")
    page, looked_at = opened.page, opened.page.locator("#look-what option:checked")
    page.fill("#classify-text", "dog cat red")
    page.click("#classify-run")
    opened.text("#classify-answers .verdict-label", "animals")
    page.click("#tab-fill")
    page.fill("#fill-text", "dog [MASK] horse")
    page.click("#fill-run")
    for view, text in (("fill", "dog [MASK] horse"), ("classify", "dog cat red"), ("fill", "dog [MASK] horse")):
        page.click(f"#tab-{view}")
        page.click(f"#{view}-look")
        playwright.expect(looked_at).to_have_text(text)
    page.select_option("#look-what", label="dog cat red")
    page.click("#tab-fill")
    page.click("#tab-look")
    playwright.expect(looked_at).to_have_text("dog cat red")  # what was chosen there stays chosen
    assert opened.problems == []


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_words_are_coloured_by_what_moved_the_label(
    browser: Any, task_server: str, classifier_model: Path, locale: str
) -> None:
    opened = opened_at(browser, task_server, "classify", locale=locale)
    page, zh = opened.page, locale == "zh-CN"
    page.fill("#classify-text", "dog cat red")
    page.click("#classify-run")
    opened.text("#classify-answers .verdict-label", "animals")
    assert not [url for url in opened.requests if url.endswith("/look")], "only when asked for"
    page.click("#moved-box summary")
    opened.text("#moved", "支持“animals”" if zh else "spoke for “animals”")
    words = page.locator("#moved bdi")
    assert words.all_inner_texts() == ["dog", "cat", "red"]
    expected = load(classifier_model, engine="torch").look("dog cat red").saliency[0, 1:4]
    shown = [float(word.get_attribute("title").replace("−", "-")) for word in words.all()]
    assert shown == pytest.approx(expected, abs=0.006)
    page.locator("#classify-answers .bars button", has_text="colours").click()
    opened.text("#moved", "支持“colours”" if zh else "spoke for “colours”")
    page.click("#classify-look")
    frame = page.frame_locator("#look-place iframe")
    frame.locator("html[data-shown]").wait_for(state="attached")
    assert frame.locator("#coloured-label").inner_text() == "animals"
    assert opened.problems == []


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_a_model_of_pairs_has_a_field_for_the_second_text(browser: Any, pair_model: Path, locale: str) -> None:
    with serving("--model", f"pairs={pair_model}") as running:
        opened = opened_at(browser, running.url, "classify", locale=locale)
        page = opened.page
        page.fill("#classify-text", "dog")
        page.click("#classify-run")
        assert not [url for url in opened.requests if url.endswith("/classify")], "half of a pair is not sent"
        page.get_by_label("第二段文本" if locale == "zh-CN" else "Second text").fill("cat horse red")
        page.keyboard.press("Control+Enter")
        opened.text("#classify-answers .verdict-label", "animals")
        page.click("#moved-box summary")
        words = page.locator("#moved bdi")
        words.first.wait_for()
        assert words.all_inner_texts() == ["dog", "cat", "horse", "red"]
        page.click("#classify-look")
        page.frame_locator("#look-place iframe").locator("html[data-shown]").wait_for(state="attached")
        assert opened.problems == []


LINES = ["dog cat horse", "", "red blue green", "<b>one</b> two three", "red red blue"]


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_the_nearest_lines_of_a_text_are_found(
    browser: Any, task_server: str, embedder_model: Path, locale: str
) -> None:
    phone = {"viewport": {"width": 390, "height": 800}} if locale == "zh-CN" else {}
    opened = opened_at(browser, task_server, "search", locale=locale, **phone)
    page = opened.page
    opened.text("#search-answers", "意思最接近的行" if locale == "zh-CN" else "The lines whose meaning is nearest")
    page.fill("#search-text", "\n".join(LINES))
    opened.text("#search-count", "4 行" if locale == "zh-CN" else "4 lines")
    page.fill("#search-query", "blue red")
    page.keyboard.press("Enter")
    rows = page.locator("#search-answers li")
    playwright.expect(rows).to_have_count(4)
    kept = [line for line in LINES if line]
    vectors = load(embedder_model).embed(["blue red", *kept])
    scores = vectors[1:] @ vectors[0]
    order = sorted(range(4), key=lambda place: -scores[place])
    assert rows.locator("button").all_inner_texts() == [kept[place] for place in order]
    shown = [float(text) for text in rows.locator(".share").all_inner_texts()]
    assert shown == pytest.approx([scores[place] for place in order], abs=0.006)
    asked = len([url for url in opened.requests if url.endswith("/embed")])
    page.fill("#search-query", "cat")
    page.keyboard.press("Enter")
    opened.text("#search-answers li:first-child", "dog cat horse")
    assert len([url for url in opened.requests if url.endswith("/embed")]) == asked + 1, "lines are not sent again"
    rows.locator("button", has_text="<b>one</b>").click()
    selected = "e => e.value.slice(e.selectionStart, e.selectionEnd)"
    assert page.eval_on_selector("#search-text", selected) == "<b>one</b> two three"
    page.fill("#search-text", kept[0])
    rows.locator("button", has_text=kept[-1]).click()  # it is no longer there to be marked
    page.click("#search-look")
    frame = page.frame_locator("#look-place iframe")
    frame.locator("html[data-shown]").wait_for(state="attached")
    playwright.expect(frame.locator("#source-text")).to_have_text("cat")
    playwright.expect(frame.locator("#target-text")).to_be_hidden()  # the model writes nothing
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.problems == []


@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_behind_the_name_of_every_model_is_its_card(browser: Any, task_server: str, locale: str) -> None:
    opened = opened_at(browser, task_server, "classify", locale=locale)
    page, zh = opened.page, locale == "zh-CN"
    for view, name, task in (
        ("classify", "kinds", ("Classification", "分类")), ("fill", "gaps", ("Filling gaps", "填空")),
        ("transcribe", "tones", ("Speech recognition", "语音识别")),
        ("search", "vectors", ("Sentence vectors", "句向量")),
    ):  # fmt: skip
        page.click(f"#tab-{view}")
        button = page.get_by_role("button", name=f"关于模型 {name}" if zh else f"About the model {name}")
        button.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name=name)
        playwright.expect(dialog.locator("dl")).to_contain_text(task[zh])
        facts = dict(zip(dialog.locator("dt").all_inner_texts(), dialog.locator("dd").all_inner_texts(), strict=True))
        assert facts["名称" if zh else "Name"] == name
        assert ("个参数" if zh else "parameters") in facts["规模" if zh else "Size"]
        page.keyboard.press("Escape")
        playwright.expect(dialog).to_be_hidden()
        playwright.expect(button).to_be_focused()
    assert opened.problems == []


def test_the_card_of_a_shipped_model_has_its_data_licence_and_scores(opened: Opened) -> None:
    card = {
        "name": "words", "title": None, "task": "translate", "reads": "text", "family": "transformer",
        "family_about": "an encoder and a decoder", "languages": ["en", "de"], "parameters": 2100736,
        "precision": "float16", "engine": "ctranslate2", "context": None, "architecture": {"model_dim": 128},
        "good_for": HOSTILE, "limits": None, "trained_on": "captions", "sentences": 29000, "licence": "CC BY 4.0",
        "source": "javascript:alert(1)", "validation": {"bleu": 40.25}, "headwise": "0.1.0",
        "tests": [{"test": "flickr", "metric": "BLEU", "value": 38.5, "signature": "nrefs:1|v:2.4", "engine": "int8"}],
    }  # fmt: skip
    opened.page.route("**/models/*", lambda route: route.fulfill(json=card))
    opened.page.get_by_role("button", name="About the model").first.click()
    opened.text("#card", "nrefs:1|v:2.4")
    for part in ("CC BY 4.0", "English → German", "2,100,736 parameters", "BLEU 38.5", "bleu 40.25", HOSTILE):
        opened.text("#card", part)
    assert opened.page.locator("#card a").count() == 0, "only addresses of the web are links"
    assert opened.page.evaluate("window.hit") is None
    opened.page.click("#card-close")
    assert opened.page.is_hidden("#card")


VIEWS = ("translate", "generate", "classify", "fill", "transcribe", "search")


def loaded(opened: Opened) -> set[str]:
    return {url.rsplit("/", 1)[1].removesuffix(".js") for url in opened.requests if "/page/" in url}


def test_only_the_views_of_the_models_at_hand_are_offered_and_loaded(opened: Opened) -> None:
    assert [view for view in VIEWS if opened.page.is_visible(f"#tab-{view}")] == ["translate", "generate"]
    assert not loaded(opened) & {"classify", "fill", "asking", "pictures", "transcribe", "sounds", "search", "card"}
    assert not loaded(opened) & {"look", "training", "chart"}, "those come when they are opened"
    opened.page.click("#tab-training")
    opened.text("#training", "live")
    assert "chart" in loaded(opened)


def test_a_server_without_translation_opens_what_it_has(browser: Any, task_server: str) -> None:
    opened = Opened(browser, task_server)
    playwright.expect(opened.page.locator("#classify")).to_be_visible()
    assert not loaded(opened) & {"translate", "generate", "pictures"}
    opened.page.click("#tab-look")
    opened.text("#look-empty button", "Go to Classify")
    opened.page.click("#look-empty button")
    playwright.expect(opened.page.locator("#tab-classify")).to_be_focused()
    assert opened.problems == []
    opened = Opened(browser, task_server, "look")  # which is open before the models are known
    opened.text("#look-empty button", "Go to Classify")
