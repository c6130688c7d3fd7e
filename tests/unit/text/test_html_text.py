"""HTML is split into markup and text without losing a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.text.html_text import join_html, split_html


def shout(document: str) -> str:
    parts = split_html(document)
    return join_html(parts, [part.text.strip().upper() for part in parts if part.text])


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("plain", "PLAIN"),
        ("<p>a <B id='x'>dog</B> runs.</p>", "<p>A <B id='x'>DOG</B> RUNS.</p>"),
        ("a &lt; b &amp; caf&eacute;<br/>x", "A &lt; B &amp; CAFÉ<br/>X"),
        ("one\n <b>\n two</b>\n", "ONE\n <b>\n TWO</b>\n"),
        ("<script>let a = '<b>x';</script>hi<style>p</STYLE>", "<script>let a = '<b>x';</script>HI<style>p</STYLE>"),
        ("<div translate=no>keep <br> <b>this</b></div> go", "<div translate=no>keep <br> <b>this</b></div> GO"),
        ("<code>a <i>b</i></code> c <!-- d --><?e f?><!g>", "<code>a <i>b</i></code> C <!-- d --><?e f?><!g>"),
        ("a < b and c > d", "A &lt; B AND C &gt; D"),
        ("<p>a</p", "<p>A</p"),
        ("a <b and never closed", "A <b and never closed"),
        (" — &nbsp; ", " — &nbsp; "),
    ],
)  # fmt: skip
def test_only_text_changes(document: str, expected: str) -> None:
    assert shout(document) == expected


@given(st.text(alphabet="ab<>/!-&;#x '=\n?[]", max_size=80))
def test_nothing_is_lost(document: str) -> None:
    assert "".join(part.raw for part in split_html(document)) == document


@given(
    st.lists(st.sampled_from(["<b>", "</b>", "<script>", "</script>", "<!--", "-->", "x", "&", "<code>", "</code>"]))
)
def test_nothing_is_lost_of_any_nesting(pieces: list[str]) -> None:
    document = "".join(pieces)
    assert "".join(part.raw for part in split_html(document)) == document


@pytest.mark.parametrize("piece", ["<a ", "<a b='", "<!--", "&#", "</", "<script>", "<"])
def test_a_document_of_unfinished_tags_is_kept(piece: str) -> None:
    document = piece * 3000
    parts = split_html(document)
    assert "".join(part.raw for part in parts) == document
    assert not any(part.text for part in parts)
