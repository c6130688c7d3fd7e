from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from headwise.look.capture import TITLES, Look
from headwise.look.page import EXPLAINED, HEADINGS, page
from headwise.look.panels import Floats
from headwise.look.token_labels import Reading, Token

WEB = resources.files("headwise.look").joinpath("web")


class Elements(HTMLParser):
    """Names and attributes of all elements, as a browser would find them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def block(text: str, name: str) -> bytes:
    found = re.search(rf'<script type="text/plain" id="{name}">([^<]*)</script>', text)
    assert found is not None
    return zlib.decompress(base64.b64decode(found[1]))


def stored_weights(text: str, name: str, shape: tuple[int, ...]) -> Floats:
    planes = np.frombuffer(block(text, name), dtype=np.uint8).reshape(2, -1).astype(np.int64)
    steps = planes[0] * 256 + planes[1]
    return np.where(steps > 0, (steps + 0.5) / 10_000, 0.0).reshape(shape).astype(np.float32)


def data_of(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


def test_three_decimals_of_the_stored_weights_are_those_of_the_arrays(seen: Look) -> None:
    text = page(seen, seen.panels(), "attention")
    for kind, weights in seen.attention.items():
        for layer, expected in enumerate(weights):
            with_mean = np.concatenate([expected, expected.mean(axis=0, keepdims=True)])
            stored = stored_weights(text, f"{kind}-{layer}", with_mean.shape)
            for ours, theirs in zip(stored.ravel(), with_mean.ravel(), strict=True):
                assert f"{ours:.3f}" == f"{theirs:.3f}"


def test_masked_cells_are_stored_as_zero(seen: Look) -> None:
    length = len(seen.target.tokens)
    stored = stored_weights(page(seen, seen.panels(), "attention"), "decoder-0", (5, length, length))
    assert (stored[:, np.triu(np.ones((length, length), dtype=bool), k=1)] == 0).all()


def test_signed_values_are_stored_whole(seen: Look) -> None:
    text = page(seen, seen.panels("saliency"), "saliency")
    stored = np.frombuffer(block(text, "saliency-0"), dtype="<f4").reshape(seen.saliency.shape)
    assert np.array_equal(stored, seen.saliency)


def test_the_page_asks_the_network_for_nothing(seen: Look) -> None:
    text = page(seen, seen.panels(), "attention")
    for tag, attributes in Elements(text).found:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not attributes.keys() & {"src", "href", "onclick", "onload", "style"}
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest", text)


HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--",
    '"&quot;',
    "]]>",
    "\u2028",
    "{{script}}",
]


def test_tokens_cannot_break_out_of_the_page(seen: Look) -> None:
    tokens = [Token(text, text) for text in HOSTILE] + list(seen.target.tokens[len(HOSTILE) :])
    hostile = Reading(tokens[: len(seen.target.tokens)], seen.target.groups, "".join(HOSTILE))
    look = replace(seen, source=replace(hostile, tokens=tokens), target=hostile, output=hostile)
    panels = [replace(panel, rows=hostile.labels, columns=hostile.labels) for panel in seen.panels()]
    changed = page(look, panels, "attention")
    plain = page(seen, seen.panels(), "attention")
    assert [tag for tag, _ in Elements(changed).found] == [tag for tag, _ in Elements(plain).found]
    panel = data_of(changed)["panels"][0]  # type: ignore[index]
    assert panel["rows"] == hostile.labels


def test_only_the_scripts_of_the_page_may_run(seen: Look) -> None:
    import hashlib

    text = page(seen, seen.panels(), "attention")
    script = text.rsplit("<script>", 1)[1].split("</script>", 1)[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "unsafe-inline" not in text


def test_merged_pieces_have_no_steps_because_the_model_knows_none(seen: Look) -> None:
    assert data_of(page(seen, seen.panels(), "attention"))["steps"] is not None
    assert data_of(page(seen, seen.panels(merge_pieces=True), "attention"))["steps"] is None


def test_an_alignment_page_has_the_moses_line(seen: Look, tmp_path: Path) -> None:
    seen.save(tmp_path / "a.html", what="alignment")
    assert data_of((tmp_path / "a.html").read_text(encoding="utf-8"))["note"] == str(seen.alignment())


def test_a_notebook_shows_the_page_in_a_sandboxed_frame(seen: Look) -> None:
    (tag, attributes), *others = Elements(seen._repr_html_()).found
    assert (tag, others) == ("iframe", [])
    assert attributes["sandbox"] == "allow-scripts"
    assert (attributes["srcdoc"] or "").startswith("<!doctype html>")


@pytest.mark.parametrize(("layers", "heads"), [(6, 8)])
def test_400_tokens_of_the_base_model_stay_under_50_megabytes(seen: Look, layers: int, heads: int) -> None:
    """Weights that compress badly: every one of them is different."""
    chance = np.random.default_rng(1)
    weights = chance.exponential(size=(layers, heads, 400, 400)).astype(np.float32)
    weights /= weights.sum(axis=-1, keepdims=True)
    panel = replace(seen.panels("encoder")[0], values=weights, rows=["token"] * 400, columns=["token"] * 400)
    kinds = ("encoder", "decoder", "cross")
    size = len(page(seen, [replace(panel, name=kind) for kind in kinds], "attention"))
    assert 1e6 < size < 50e6


def known_in_chinese() -> set[str]:
    words = WEB.joinpath("words.js").read_text(encoding="utf-8")
    table = words[words.index("{") : words.index("};")]
    return set(re.findall(r'^  "?(.*?)"?:(?: "|$)', table, re.MULTILINE))


@pytest.mark.parametrize("name", ["page", "picture", "sound"])
def test_every_word_of_the_page_has_its_chinese(name: str) -> None:
    markup, script = (WEB.joinpath(f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("html", "js"))
    body = re.sub(r"\{\{\w+\}\}", "", markup[markup.index("<body>") :])
    static = {" ".join(text.split()) for text in re.findall(r">([^<]+)<", body)} | set(
        re.findall(r'(?:aria-label|alt)="(.*?)"', body)
    )
    told = set(re.findall(r'\bt\("(.*?)"', script)) | set(re.findall(r'^  \w+: "(.*?)",$', script, re.MULTILINE))
    wanted = {text for text in static | told if re.search(r"[A-Za-z]{2,}", text)}
    assert wanted <= known_in_chinese(), wanted - known_in_chinese()


def test_what_panels_are_called_has_its_chinese(seen: Look) -> None:
    panels = [panel for what in ("attention", "alignment", "positions", "saliency") for panel in seen.panels(what)]
    of_panels = {text for panel in panels for text in (panel.title, panel.row_title, panel.column_title)}
    biases = {title.replace("self-attention", "position bias") for title in TITLES.values()}
    wanted = of_panels | biases | {*HEADINGS.values(), *EXPLAINED.values(), *TITLES.values()}
    assert wanted <= known_in_chinese(), wanted - known_in_chinese()
