"""The page of `headwise look` in a real Chromium: what it shows must be what the arrays say."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headwise.config import schema
from headwise.look.capture import Look, look_at_translation
from headwise.models.recurrent import RecurrentSeq2Seq
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser

SOURCE = "the animal did not cross the street because it was too tired"
TARGET = "动物没有过马路因为它太累了"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed (Debian: apt install chromium)")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def seen() -> Look:
    torch.manual_seed(1)
    tokenizers = TokenizerPair.one(Tokenizer.train([SOURCE, TARGET] * 4, schema.Tokenizer(kind="bpe", size=330)))
    model = Transformer(
        source_vocab=tokenizers.source.size, model_dim=32, num_heads=4, encoder_layers=3, decoder_layers=3, ff_dim=48
    ).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("query_key_value.weight"):
                weight.mul_(4)  # heads that differ, as after training
    return look_at_translation(model, tokenizers, tokenizers.source.encode(SOURCE), tokenizers.target.encode(TARGET))


class Shown:
    """A page, the errors that it made and the addresses that it asked for."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.page = browser.new_page(viewport={"width": 1200, "height": 900}, **options)
        self.page.set_default_timeout(20_000)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-shown]", state="attached")

    def wait(self, *state: object) -> None:
        """Until view, layer, head and row or step are these."""
        self.page.wait_for_selector(f'html[data-shown="{" ".join(map(str, state))}"]', state="attached")

    def view(self, name: str) -> None:
        self.page.locator(f"label:has(#view-{name})").click()

    def weights(self, strip: str) -> list[str]:
        return [text.strip() for text in self.page.locator(f"{strip} .token .weight").all_inner_texts()]

    def row(self, index: int) -> None:
        self.page.wait_for_selector(f'#columns[data-row="{index}"]')


@pytest.fixture
def shown(browser: Any, seen: Look, tmp_path: Path) -> Iterator[Shown]:
    seen.save(tmp_path / "attention.html")
    shown = Shown(browser, tmp_path / "attention.html")
    yield shown
    assert shown.problems == []
    assert [url for url in shown.requests if not url.startswith(("file:", "blob:"))] == []
    shown.page.close()


def as_text(values: Any) -> list[str]:
    return [f"{value:.3f}" for value in values]


def test_what_did_it_attend_to_in_layer_3_head_2(shown: Shown, seen: Look) -> None:
    assert seen.source is not None
    place = next(group[0] for group, word in zip(seen.source.groups, seen.source.words, strict=True) if word == "it")
    shown.page.select_option("#layer", "3")
    shown.page.select_option("#head", "2")
    shown.wait("encoder", 3, 2, 0)
    shown.page.locator("#rows .token").nth(place).hover()
    shown.row(place)
    expected = seen.attention["encoder"][2, 1, place]
    assert shown.weights("#columns") == as_text(expected)
    most = shown.page.locator("#top li").first
    assert most.locator(".number").inner_text() == f"{expected.max():.3f}"
    assert most.locator(".piece").inner_text().startswith(seen.source.labels[int(expected.argmax())])


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_kind_layer_and_head_shows_its_own_numbers(shown: Shown, seen: Look, kind: str) -> None:
    shown.view(kind)
    for layer, head, row in ((1, 1, 0), (2, 4, 3), (3, 3, 5)):
        shown.page.select_option("#layer", str(layer))
        shown.page.select_option("#head", str(head))
        shown.page.locator("#rows .token").nth(row).click()
        shown.row(row)
        shown.page.wait_for_function(
            "row => document.querySelector('#rows .current').dataset.index === row", arg=str(row)
        )
        expected = as_text(seen.attention[kind][layer - 1, head - 1, row])
        shown.page.wait_for_function(
            "text => [...document.querySelectorAll('#columns .weight')].map(w => w.textContent).join() === text",
            arg=",".join(expected),
        )
        assert shown.weights("#columns") == expected


def test_the_mean_of_all_heads_is_their_mean(shown: Shown, seen: Look) -> None:
    shown.page.select_option("#head", "mean of all")
    shown.wait("encoder", 1, 5, 0)
    assert shown.weights("#columns") == as_text(seen.attention["encoder"][0].mean(axis=0)[0])


def test_clicking_a_small_matrix_picks_that_head(shown: Shown, seen: Look) -> None:
    heads = shown.page.locator("#head-grid .head")
    heads.nth(3).wait_for()
    assert heads.count() == 5
    heads.nth(2).click()
    shown.wait("encoder", 1, 3, 0)
    assert shown.page.input_value("#head") == "3"
    assert shown.weights("#columns") == as_text(seen.attention["encoder"][0, 2, 0])


def test_stepping_through_decoding_shows_what_was_read_and_written(shown: Shown, seen: Look) -> None:
    shown.view("steps")
    shown.wait("steps", 1, 1, 0)
    assert shown.page.locator("#previous").is_disabled()
    for step in range(3):
        assert shown.page.locator("#said .piece").all_inner_texts() == [
            seen.target.labels[step],
            seen.output.labels[step],
        ]
        assert f"{seen.steps.chances[step]:.3f}" in shown.page.inner_text("#said")
        assert shown.weights("#step-source") == as_text(seen.attention["cross"][0, 0, step])
        own = shown.weights("#step-target")
        assert own[: step + 1] == as_text(seen.attention["decoder"][0, 0, step, : step + 1])
        assert set(own[step + 1 :]) == {""}
        numbers = shown.page.locator("#candidates .number").all_inner_texts()
        assert numbers == [f"{chance:.3f}" for _, chance in seen.steps.candidates[step]]
        shown.page.click("#next")
        shown.wait("steps", 1, 1, step + 1)
    shown.page.locator("#step").focus()
    shown.page.keyboard.press("End")
    shown.wait("steps", 1, 1, len(seen.target.tokens) - 1)
    assert shown.page.locator("#said .piece").nth(1).inner_text() == "⟨end⟩"
    assert shown.page.locator("#next").is_disabled()


def test_pointing_at_a_cell_shows_its_tokens_and_number(shown: Shown, seen: Look) -> None:
    shown.view("cross")
    shown.wait("cross", 1, 1, 0)
    assert seen.source is not None
    shown.page.locator("#heatmap").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        shown.page.keyboard.press(key)
    expected = f"{seen.output.labels[1]} → {seen.source.labels[1]}  {seen.attention['cross'][0, 0, 1, 1]:.3f}"
    shown.page.wait_for_function("text => document.getElementById('cell').textContent === text", arg=expected)


def test_the_large_matrix_is_darkest_where_the_weight_is_largest(shown: Shown, seen: Look) -> None:
    weights = seen.attention["encoder"][0, 0]
    row, column = np.unravel_index(int(weights.argmax()), weights.shape)
    light = shown.page.evaluate(
        """([row, column]) => {
          const { width, height } = heatmap.image;
          const { data } = heatmap.image.getContext("2d").getImageData(0, 0, width, height);
          const all = Array.from({ length: width * height }, (_, i) => data[4 * i] + data[4 * i + 1] + data[4 * i + 2]);
          return [all[row * width + column], Math.min(...all)];
        }""",
        [int(row), int(column)],
    )
    assert light[0] == light[1]


def test_the_whole_page_can_be_used_from_the_keyboard(shown: Shown, seen: Look) -> None:
    keyboard = shown.page.keyboard
    for key, state in (("l", (2, 1)), ("h", (2, 2)), ("H", (2, 1)), ("L", (1, 1)), ("L", (3, 1))):
        keyboard.press(key)
        shown.wait("encoder", *state, 0)
    keyboard.press("n")
    shown.row(1)
    reached = set()
    for _ in range(20):
        keyboard.press("Tab")
        reached.add(shown.page.evaluate("document.activeElement.closest('[id]')?.id"))
    assert {"theme", "view-encoder", "layer", "head", "rows", "head-grid", "zoom-in", "heatmap"} <= reached
    shown.page.locator("#rows .token").nth(1).focus()
    keyboard.press("ArrowRight")
    shown.row(2)
    assert shown.weights("#columns") == as_text(seen.attention["encoder"][2, 0, 2])
    shown.page.locator("#view-encoder").focus()
    keyboard.press("ArrowRight")
    shown.wait("decoder", 3, 1, 0)


def test_the_page_is_dark_where_the_reader_wants_it(browser: Any, seen: Look, tmp_path: Path) -> None:
    seen.save(tmp_path / "a.html")
    back = "getComputedStyle(document.body).backgroundColor"
    dark = Shown(browser, tmp_path / "a.html", color_scheme="dark")
    light = Shown(browser, tmp_path / "a.html", color_scheme="light")
    assert sum(map(int, dark.page.evaluate(back)[4:-1].split(","))) < 150
    assert sum(map(int, light.page.evaluate(back)[4:-1].split(","))) > 600
    light.page.click("#theme")
    assert light.page.evaluate(back) == dark.page.evaluate(back)
    assert light.problems == dark.problems == []


def light_of(colour: list[int]) -> float:
    """Relative luminance (WCAG 2)."""
    parts = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))


def test_text_can_be_read_on_every_shade_in_both_themes(shown: Shown) -> None:
    for _ in range(2):
        shades = shown.page.evaluate(
            "[...Array(201).keys()].map(i => shade(i / 100 - 1, 1)).map(rgb => [rgb, contrast(rgb)])"
        )
        for ground, ink in shades:
            low, high = sorted((light_of(ground), {"#000000": 0.0, "#ffffff": 1.0}[ink]))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (ground, ink)
        shown.page.click("#theme")


@pytest.mark.parametrize("width", [1200, 420])
def test_nothing_is_wider_than_the_window(browser: Any, seen: Look, tmp_path: Path, width: int) -> None:
    seen.save(tmp_path / "a.html")
    shown = Shown(browser, tmp_path / "a.html")
    shown.page.set_viewport_size({"width": width, "height": 800})
    for view in ("encoder", "cross", "steps"):
        shown.view(view)
        shown.page.wait_for_selector(f'html[data-shown^="{view}"]', state="attached")
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_text_stays_text(browser: Any, seen: Look, tmp_path: Path) -> None:
    tokenizer = Tokenizer.train([SOURCE], schema.Tokenizer(kind="char", size=300))
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"model_dim": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 16}
    model = Transformer(source_vocab=tokenizer.size, **sizes)
    hostile = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1">'
    ids = tokenizer.encode(hostile)
    look_at_translation(model, TokenizerPair.one(tokenizer), ids, ids).save(tmp_path / "a.html", merge_pieces=True)
    shown = Shown(browser, tmp_path / "a.html")
    assert shown.page.evaluate("window.hit") is None
    assert shown.page.inner_text("#source-text") == hostile
    assert shown.page.locator("#columns .piece").first.inner_text().startswith("</script><script>")
    assert shown.problems == []


def test_400_tokens_are_drawn_and_can_be_read(browser: Any, seen: Look, tmp_path: Path) -> None:
    torch.manual_seed(1)
    tokenizers = TokenizerPair.one(Tokenizer.train([SOURCE, TARGET] * 4, schema.Tokenizer(kind="bpe", size=330)))
    model = Transformer(
        source_vocab=tokenizers.source.size, model_dim=64, num_heads=8, encoder_layers=6, decoder_layers=6, ff_dim=64
    )
    ids = [260 + place % 60 for place in range(399)]
    look = look_at_translation(model, tokenizers, ids, ids)
    look.save(tmp_path / "long.html")
    assert (tmp_path / "long.html").stat().st_size < 50e6
    shown = Shown(browser, tmp_path / "long.html")
    shown.page.select_option("#layer", "6")
    shown.page.select_option("#head", "8")
    shown.wait("encoder", 6, 8, 0)
    shown.page.locator("#rows .token").nth(390).click()
    shown.row(390)
    assert shown.weights("#columns") == as_text(look.attention["encoder"][5, 7, 390])
    for _ in range(5):
        shown.page.click("#zoom-in")
    assert shown.page.evaluate("heatmap.left") > 0  # large enough for the tokens beside the cells
    assert shown.problems == []


@pytest.mark.parametrize("what", ["alignment", "positions", "mask", "saliency"])
def test_the_other_pictures_open_without_an_error(browser: Any, seen: Look, tmp_path: Path, what: str) -> None:
    seen.save(tmp_path / "a.html", what=what)
    shown = Shown(browser, tmp_path / "a.html")
    if what == "saliency":
        expected = [f"{value:.3f}".replace("-", "−") for value in seen.saliency[0]]
        assert shown.weights("#columns") == expected
    if what == "alignment":
        assert shown.page.inner_text("#note code") == str(seen.alignment())
    assert shown.problems == []


def test_a_recurrent_model_is_shown_without_the_self_attention_that_it_does_not_have(
    browser: Any, tmp_path: Path
) -> None:
    torch.manual_seed(1)
    tokenizers = TokenizerPair.one(Tokenizer.train([SOURCE, TARGET] * 4, schema.Tokenizer(kind="bpe", size=330)))
    model = RecurrentSeq2Seq(source_vocab=tokenizers.source.size, model_dim=16, hidden_dim=16).eval()
    source, target = tokenizers.source.encode(SOURCE), tokenizers.target.encode(TARGET)
    look = look_at_translation(model, tokenizers, source, target)
    look.save(tmp_path / "a.html")
    shown = Shown(browser, tmp_path / "a.html")
    assert shown.weights("#columns") == as_text(look.attention["cross"][0, 0, 0])
    shown.view("steps")
    shown.wait("steps", 1, 1, 0)
    shown.page.click("#next")
    shown.wait("steps", 1, 1, 1)
    assert shown.weights("#step-source") == as_text(look.attention["cross"][0, 0, 1])
    assert shown.page.inner_text("#step-target-title") == "Read so far"
    later = shown.page.locator("#step-target .token.later").count()
    assert later == len(look.target.tokens) - 2
    assert shown.problems == []
    shown.page.close()


def test_the_page_speaks_chinese_where_its_language_is_chinese(browser: Any, seen: Look, tmp_path: Path) -> None:
    place = tmp_path / "a.html"
    seen.save(place)
    page = place.read_text(encoding="utf-8").replace('<html lang="en"', '<html lang="zh-CN"')
    place.write_text(page, encoding="utf-8")
    shown = Shown(browser, place)
    shown.view("steps")
    shown.page.wait_for_selector("#stepper[data-step]")
    own = {SOURCE, TARGET, *seen.target.labels, *([] if seen.source is None else seen.source.labels)}
    words = [line.strip() for line in shown.page.inner_text("body").splitlines() if line.strip() not in own]
    english = [line for line in words if re.search(r"[A-Za-z]{3,}", line) and not re.search(r"[\u4e00-\u9fff]", line)]
    assert english == []
    assert "逐步查看" in words
    assert shown.problems == []
    shown.page.close()


def test_the_text_of_a_classifier_is_coloured_by_what_moved_its_label(
    browser: Any, classifier_model: Path, tmp_path: Path
) -> None:
    import headwise

    seen = headwise.load(classifier_model).look("dog cat red")
    seen.save(tmp_path / "words.html")
    shown = Shown(browser, tmp_path / "words.html")
    assert shown.page.locator("#coloured-text").inner_text() == "dog cat red"
    assert shown.page.locator("#coloured-label").inner_text() == "animals"
    words = shown.page.locator("#coloured-text bdi")
    titles = [words.nth(place).get_attribute("title").replace("−", "-") for place in range(3)]
    assert [float(title) for title in titles] == pytest.approx(seen.saliency[0, 1:4], abs=1e-3)
    colours = words.evaluate_all("all => all.map(word => getComputedStyle(word).backgroundColor)")
    assert len(set(colours)) == 3
    assert shown.problems == []
    shown.page.close()
