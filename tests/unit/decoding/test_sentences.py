from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.decoding.sentences import Sentence, cut_to_fit, join_sentences, split_sentences

# A bar is where a sentence ends.
EXAMPLES = {
    "en": [
        "It rains. |We stay. |Do we? |Yes!",
        "Dr. Smith met Mrs. Jones at 5 p.m. yesterday. |They talked.",
        "He lives in the U.S. and works, e.g. on Mondays, for J. R. Hartley. |Good.",
        'She said "Stop!" and left. |"Why?" |Nobody knew.',
        "Prices rose 3.5 percent. |In 2020. |It was no. 7 of them.",
        "Wait... what? |No… |Go on.",
        "(It was late.) |We slept.",
        "Apples, pears, etc. |Then we left.",
        "They work for J.P. Morgan. |He lives in the U.S. |Then he left.",
    ],
    "de": [
        "Es regnet. |Wir bleiben. |Warum?",
        "Am 3. Mai traf Dr. Müller z. B. Frau Kurz. |Es war schön.",
        "Das ist z.B. gut, d.h. nicht schlecht. |Ja!",
        "„Hilfe!“ rief er. |„Komm!“ |Sie kam.",
        "Der 2. Weltkrieg usw. |Danach kam Frieden.",
        "Herr Prof. Dr. Kunz, geb. 1950, wohnt in der Hauptstr. 5 in Bonn. |Gut.",
    ],
    "fr": [
        "Il pleut. |Pourquoi ? |Parce que !",
        "M. Dupont et Mme. Durand arrivent. |Ils sourient.",
        "Il dit : « Viens ! » |Elle vint.",
        "C’est loin, p. ex. à Paris. |Oui.",
    ],
    "zh": [
        "下雨了。|我们留下！|为什么？|因为冷。",
        "他说：“走吧。”|她走了。",
        "价格是3.5元。|很好……是的。|“好！”|他笑了。",
    ],
    "ja": [
        "雨が降る。|帰ろう！|なぜ？|寒いから。",
        "彼は「行こう。」と言った。|「はい。」|彼女は笑った。",
        "そうですか？！|はい。",
    ],
}


@pytest.mark.parametrize(("language", "marked"), [(code, text) for code, texts in EXAMPLES.items() for text in texts])
def test_sentences_end_where_a_reader_would_end_them(language: str, marked: str) -> None:
    expected = [part.strip() for part in marked.split("|")]
    found = [sentence.text for sentence in split_sentences(marked.replace("|", ""), language)]
    assert found == expected


def test_line_breaks_always_end_a_sentence_and_stay_where_they_are() -> None:
    text = "  A title\n\nFirst line. Second\nline.  \n"
    sentences = split_sentences(text, "en")
    assert [s.text for s in sentences] == ["", "A title", "First line.", "Second", "line."]
    assert "".join(s.text + s.after for s in sentences) == text
    assert join_sentences(["", "a", "b", "c", "d"], sentences, "de") == "  a\n\nb c\nd  \n"


@given(st.text(alphabet="aB. !?\n。」)\"'…1\u00a0é", max_size=60))
def test_nothing_of_a_text_is_lost_or_moved(text: str) -> None:
    assert "".join(sentence.text + sentence.after for sentence in split_sentences(text)) == text


def test_one_space_between_sentences_comes_and_goes_with_the_language() -> None:
    chinese = split_sentences("下雨了。我们留下！", "zh")
    assert join_sentences(["It rains.", "We stay!"], chinese, "en") == "It rains. We stay!"
    english = split_sentences("It rains. We stay!", "en")
    assert join_sentences(["下雨了。", "我们留下！"], english, "zh") == "下雨了。我们留下！"


@pytest.mark.parametrize("code", ["zh_CN", "ZH", "zh-Hans", "ja_JP", "JA"])
def test_no_space_is_inserted_however_the_code_is_spelt(code: str) -> None:
    english = split_sentences("It rains. We stay!", "en")
    assert join_sentences(["下雨了。", "我们留下！"], english, code) == "下雨了。我们留下！"


@pytest.mark.parametrize("code", ["de", "de_AT", "DE", "de-CH"])
def test_rules_of_a_language_hold_however_the_code_is_spelt(code: str) -> None:
    assert [sentence.text for sentence in split_sentences("Am 3. Mai war es kalt.", code)] == ["Am 3. Mai war es kalt."]


def test_text_that_is_too_long_is_cut_at_spaces_and_comes_together_again() -> None:
    text = "one two  three four five six"
    pieces = cut_to_fit(text, len, 10)
    assert all(len(piece.text) <= 10 for piece in pieces)
    assert "".join(piece.text + piece.after for piece in pieces) == text
    assert cut_to_fit("x" * 25, len, 10) == [Sentence("x" * 6, "")] * 3 + [Sentence("x" * 7, "")]
