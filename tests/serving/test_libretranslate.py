"""What LibreTranslate's own tests of its API expect, of our server: fourteen cases, with German for Spanish."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from running import Answer, Running

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def post_form(server: Running, path: str, fields: dict[str, str] | None = None) -> Answer:
    if fields is None:
        return server.ask("POST", path)
    return server.ask("POST", path, urlencode(fields).encode(), FORM)


HELLO = {"q": "Hello", "source": "en", "target": "de", "format": "text"}


def test_1_a_form_is_translated(server: Running) -> None:
    answer = post_form(server, "/translate", HELLO)
    assert (answer.status, list(answer.json)) == (200, ["translatedText"])


def test_2_a_list_of_texts_gives_a_list_of_translations(server: Running) -> None:
    answer = server.ask("POST", "/translate", {**HELLO, "q": ["Hello", "World"]})
    assert (answer.status, len(answer.json["translatedText"])) == (200, 2)


@pytest.mark.parametrize(("field", "other"), [("target", {"source": "en"}), ("source", {"target": "de"})])
def test_3_an_unknown_language_is_named(server: Running, field: str, other: dict[str, str]) -> None:
    answer = post_form(server, "/translate", {"q": "Hello", "format": "text", **other, field: "zz"})
    assert (answer.status, answer.json) == (400, {"error": "zz is not supported"})


def test_4_a_missing_text_is_named(server: Running) -> None:
    fields = {name: value for name, value in HELLO.items() if name != "q"}
    expected = (400, {"error": "Invalid request: missing q parameter"})
    for answer in (post_form(server, "/translate", fields), server.ask("POST", "/translate", fields)):
        assert (answer.status, answer.json) == expected


def test_5_detect_gives_a_list_of_languages_with_confidences(server: Running) -> None:
    answer = post_form(server, "/detect", {"q": "Hello"})
    assert answer.status == 200
    assert {one["language"] for one in answer.json} == {"en", "de"}
    assert all(0 <= one["confidence"] <= 100 for one in answer.json)


def test_6_detect_without_a_text_is_refused(server: Running) -> None:
    answer = post_form(server, "/detect")
    assert (answer.status, answer.json) == (400, {"error": "Invalid request: missing q parameter"})


def test_10_languages_have_a_code_and_a_name(server: Running) -> None:
    answer = server.ask("GET", "/languages")
    assert (answer.status, answer.json[0]["code"], answer.json[0]["name"]) == (200, "en", "English")


def test_11_health_is_ok(server: Running) -> None:
    answer = server.ask("GET", "/health")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_12_the_specification_is_there(server: Running) -> None:
    answer = server.ask("GET", "/spec")
    assert (answer.status, answer.json) == (200, server.ask("GET", "/openapi.json").json)


def test_14_the_settings_of_the_page_are_there(server: Running) -> None:
    assert server.ask("GET", "/frontend/settings").status == 200


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/detect"), ("POST", "/languages"), ("POST", "/health"), ("POST", "/spec")]
)
def test_7_8_9_13_another_method_is_refused(server: Running, method: str, path: str) -> None:
    assert server.ask(method, path).status == 405


# ---- beyond the fourteen


@pytest.mark.parametrize("content", ["un garçon, 一只狗".encode(), b"un+gar%C3%A7on,+%E4%B8%80%E5%8F%AA%E7%8B%97"])
def test_a_form_is_utf_8_whether_or_not_it_is_percent_encoded(server: Running, content: bytes) -> None:
    plain = server.ask("POST", "/detect", {"q": "un garçon, 一只狗"}).json
    assert server.ask("POST", "/detect", b"q=" + content, FORM).json == plain
    boundary = (
        b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + "un garçon, 一只狗".encode() + b"\r\n--x--\r\n"
    )
    assert server.ask("POST", "/detect", boundary, {"Content-Type": "multipart/form-data; boundary=x"}).json == plain


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"q=\xff", "the form is not UTF-8"),
        (b"q=%ff", "the form is not UTF-8"),
        (b"q=a&q=b", "a field of the form is given twice"),
        (b"&".join(b"a%d=1" % number for number in range(30)), "at most 20 fields"),
    ],
)
def test_a_damaged_form_is_refused_with_the_reason(server: Running, content: bytes, problem: str) -> None:
    answer = server.ask("POST", "/detect", content, FORM)
    assert (answer.status, problem in answer.json["error"]) == (400, True)


def test_a_form_may_ask_for_details(server: Running) -> None:
    asked: dict[str, Any] = {"q": "red dog", "source": "en", "target": "de", "details": "true", "beam": "2"}
    (details,) = post_form(server, "/translate", asked).json["details"]
    assert [token["text"] for token in details["tokens"]] == ["rot", "Hund"]


def test_html_keeps_its_tags_and_only_its_text_is_translated(server: Running) -> None:
    document = '<p class="a">red <b>dog</b>\n<!-- cat --><code>cat</code> blue</p>'
    expected = '<p class="a">rot <b>Hund</b>\n<!-- cat --><code>cat</code> blau</p>'
    answer = server.translate([document, "<br>", ""], format="html", alternatives=1, details=True).json
    assert answer["translatedText"] == [expected, "<br>", ""]
    assert answer["details"][0]["sentences"] == 3
    assert len(answer["alternatives"][0]) == 1
    assert answer["alternatives"][0][0].endswith("</p>")


def test_text_in_the_language_that_it_would_be_translated_to_is_refused(server: Running) -> None:
    answer = server.translate("Ein Hund läuft über die grüne Wiese.", source="auto")
    assert answer.status == 400
    assert "the text seems to be in de (confidence" in answer.json["error"]
    uncertain = server.translate("ok", source="auto")
    assert (uncertain.status, "uncertain" in uncertain.json["error"]) == (400, True)
    mixed = server.translate(
        ["A dog runs over the green grass.", "Ein Hund läuft über die Wiese.", "Two dogs are running."], source="auto"
    )
    assert (mixed.status, "text 2 seems to be in de" in mixed.json["error"]) == (400, True)


def test_numbers_alone_are_in_any_language(server: Running) -> None:
    answer = server.translate(["", "12"], source="auto").json
    assert answer["detectedLanguage"] == [{"language": "en", "confidence": 0.0}] * 2
