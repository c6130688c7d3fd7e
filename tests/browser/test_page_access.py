"""The server's page for everybody: languages, keyboard, screen reader, small screens, both themes; and hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fixtures_page import HOSTILE, Opened
from sounds import wav_bytes

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser


def test_hostile_text_is_text_everywhere(opened: Opened) -> None:
    page = opened.page
    opened.translate(f"two dog {HOSTILE}")
    page.wait_for_selector("#output .token")
    page.click("#translate-look")
    page.frame_locator("#look-place iframe").locator("html[data-shown]").wait_for(state="attached")
    assert f"two dog {HOSTILE}".startswith(page.locator("#look-what option").inner_text().removesuffix("…"))
    page.click("#tab-generate")
    page.fill("#prompt", HOSTILE)
    page.fill("#max-tokens", "3")
    page.click("#generate-run")
    opened.text("#generate-status", "Done")
    assert page.locator("#generated .given").inner_text() == HOSTILE
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.hit") is None


def test_a_server_with_a_key_asks_for_it_and_is_asked_again_with_it(opened: Opened) -> None:
    opened.expected.append("status of 401")

    def answer(route: Any) -> None:
        if route.request.headers.get("x-api-key") == "of mine":
            route.continue_()
        else:
            route.fulfill(status=401, content_type="application/json", body='{"error": "a valid API key is needed"}')

    opened.page.route("**/models", answer)
    opened.page.reload()
    opened.page.wait_for_selector("#key-bar:not([hidden])")
    opened.page.keyboard.type("of mine")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector("html[data-ready]", state="attached")
    assert opened.page.is_hidden("#key-bar")
    assert "of mine" not in opened.page.evaluate("() => JSON.stringify(localStorage)")


def test_a_language_is_chosen_by_the_browser_and_switched_by_hand(browser: Any, page_server: str) -> None:
    opened = Opened(browser, page_server, locale="zh-CN")
    assert opened.page.inner_text("#tab-training") == "训练"
    assert opened.page.get_attribute("html", "lang") == "zh-CN"
    opened.translate("two dog")
    opened.text("#confidence", "置信度")
    opened.page.select_option("#language", "en")
    assert opened.page.inner_text("#tab-training") == "Training"
    opened.text("#confidence", "Confidence")
    opened.page.reload()
    opened.text("#tab-training", "Training")
    assert opened.problems == []
    opened.context.close()


def test_the_tabs_are_used_from_the_keyboard_alone(opened: Opened) -> None:
    page, keyboard = opened.page, opened.page.keyboard
    focused = "() => document.activeElement.id"
    keyboard.press("Tab")
    keyboard.press("Tab")
    assert page.evaluate(focused) == "tab-translate"
    moves = "ArrowRight look, End training, ArrowRight translate, ArrowLeft training, Home translate, ArrowRight look"
    for key, tab in (move.split() for move in f"{moves}, ArrowRight generate".split(", ")):
        keyboard.press(key)
        assert page.evaluate(focused) == f"tab-{tab}"
        assert page.get_attribute(f"#tab-{tab}", "aria-selected") == "true"
        assert page.locator("[role=tabpanel]:visible").get_attribute("id") == tab
    reached = []
    for _ in range(9):
        keyboard.press("Tab")
        reached.append(page.evaluate(focused))
    assert reached[:2] == ["language", "theme"], "one stop for all tabs"
    assert {"prompt", "generate-run", "temperature", "seed"} <= set(reached)


def test_nothing_is_wider_than_a_telephone(browser: Any, page_server: str) -> None:
    opened = Opened(browser, page_server, viewport={"width": 360, "height": 700})
    page = opened.page
    opened.translate("two dog " * 30 + "\n" + "x" * 300)
    page.wait_for_selector("#output .token")
    for box in ("tokens", "alternatives", "glossary"):
        page.click(f"#{box}-box summary")
    page.click("#glossary-add")
    for view in ("translate", "look", "generate", "training"):
        page.click(f"#tab-{view}")
        if view == "training":
            page.wait_for_selector("#charts .plot path.series")
        for language in ("zh", "en"):
            page.select_option("#language", language)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= 360, (view, language)
    opened.context.close()


CONTRAST = """() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const paint = canvas.getContext("2d", { willReadFrequently: true });
  const over = (colours) => {
    paint.clearRect(0, 0, 1, 1);
    for (const colour of colours) { paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1); }
    return [...paint.getImageData(0, 0, 1, 1).data];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const exempt = !element.checkVisibility() || element.closest(".unseen, .skip, :disabled, option");
    if (exempt || !walker.currentNode.textContent.trim()) continue;
    const grounds = [];
    for (let e = element; e; e = e.parentElement) grounds.unshift(getComputedStyle(e).backgroundColor);
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(over([...grounds, ink])), light(over(grounds))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(`${walker.currentNode.textContent.trim()} ${ratio.toFixed(2)}`);
  }
  return poor;
}"""


NAMELESS = """() => [
  ...document.querySelectorAll("button, select, input, textarea, iframe, canvas, video"),
].filter((e) => e.checkVisibility() && e.getAttribute("aria-hidden") !== "true" && !(e.getAttribute("aria-label") ||
  e.textContent.trim() && e.tagName === "BUTTON" || e.title || [...(e.labels ?? [])].some((l) => l.textContent.trim()))
).map((e) => e.outerHTML)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_against_its_ground(browser: Any, page_server: str, scheme: str) -> None:
    """WCAG AA: 4.5 to 1."""
    opened = Opened(browser, page_server, color_scheme=scheme)
    page = opened.page
    opened.translate("two dog")
    opened.settled("zwei Hund")
    for box in ("tokens", "alternatives", "glossary"):
        page.click(f"#{box}-box summary")
    for view in ("translate", "look", "generate", "training"):
        page.click(f"#tab-{view}")
        if view == "training":
            page.wait_for_selector("#charts .plot path.series")
        assert page.evaluate(CONTRAST) == [], view
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor").startswith(
        "rgb(1" if scheme == "dark" else "rgb(2"
    )
    opened.context.close()


def open_all(opened: Opened) -> Iterator[str]:
    """Opens what the views of other tasks show, one after the other."""
    page = opened.page
    page.fill("#classify-text", "dog cat red")
    page.click("#classify-run")
    page.click("#moved-box summary")
    page.wait_for_selector("#moved bdi")
    yield "classify"
    page.select_option("#classify-model", "stripes")
    page.wait_for_selector("#picture-choose")
    yield "pictures"
    page.click("#tab-fill")
    page.fill("#fill-text", "dog [MASK] horse")
    page.click("#fill-run")
    page.wait_for_selector("#fill-answers .bars")
    yield "fill"
    page.click("#tab-transcribe")
    with page.expect_file_chooser() as chooser:
        page.click("#sound-choose")
    sound = {"name": "a.wav", "mimeType": "audio/wav", "buffer": wav_bytes(data=bytes(range(250)) * 128)}
    chooser.value.set_files(sound)
    page.wait_for_selector("#segments button:enabled")
    yield "transcribe"
    page.click("#tab-search")
    page.fill("#search-text", "red dog\n" + "x" * 300)
    page.fill("#search-query", "red")
    page.click("#search-run")
    page.wait_for_selector("#search-answers li")
    yield "search"
    page.click("#search .about")
    page.wait_for_selector("#card dl")
    yield "card"


@pytest.mark.parametrize(("scheme", "width"), [("light", 360), ("dark", 1200)])
def test_the_views_of_all_tasks_can_be_read_named_and_fit(
    browser: Any, task_server: str, scheme: str, width: int
) -> None:
    size = {"width": width, "height": 800}
    opened = Opened(browser, task_server, "classify", color_scheme=scheme, viewport=size)
    for view in open_all(opened):
        assert opened.page.evaluate(CONTRAST) == [], view
        assert opened.page.evaluate(NAMELESS) == [], view
        assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= width, view
    assert opened.problems == []
    opened.context.close()


def test_the_theme_is_switched_by_hand_and_remembered(opened: Opened) -> None:
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = opened.page.evaluate(ground)
    opened.page.select_option("#theme", "dark")
    dark = opened.page.evaluate(ground)
    assert dark != light
    opened.page.reload()
    opened.page.wait_for_selector("html[data-ready]", state="attached")
    assert opened.page.evaluate(ground) == dark


def test_every_control_has_a_name(opened: Opened) -> None:
    """What a screen reader says of it."""
    opened.translate("two dog")
    opened.settled("zwei Hund")
    for view in ("translate", "generate", "training"):
        opened.page.click(f"#tab-{view}")
        assert opened.page.evaluate(NAMELESS) == []
