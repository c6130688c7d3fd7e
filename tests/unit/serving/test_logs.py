"""How a record of the log is formatted."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from typing import Any

import pytest

from headwise.serving.logs import JsonLines, TextLines, set_up_logs


def record(**extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord(
        {"name": "headwise.access", "levelname": "INFO", "levelno": 20, "msg": "%s ok", "args": ("é",), **extra}
    )
    made.created = 1_700_000_000.25
    return made


def test_the_time_has_an_offset_and_names_the_same_moment() -> None:
    time, _, message = TextLines().format(record()).partition(" ")
    moment = datetime.fromisoformat(time)
    assert moment.utcoffset() is not None
    assert (moment.timestamp(), message) == (1_700_000_000.25, "é ok")


def test_json_has_the_message_and_its_fields_on_one_line() -> None:
    line = JsonLines().format(record(fields={"status": 200}))
    value = json.loads(line)
    assert "\n" not in line
    assert (value["message"], value["status"], value["level"]) == ("é ok", 200, "info")


def raised(text: str) -> tuple[Any, ...]:
    try:
        raise ValueError(text)
    except ValueError as error:
        return (type(error), error, error.__traceback__)


@pytest.mark.parametrize("kind", [TextLines, JsonLines])
def test_an_exception_is_a_type_and_a_place_and_does_not_quote_a_text(kind: type[logging.Formatter]) -> None:
    line = kind().format(
        record(msg="failed\nfuture: <Task exception=ValueError('secret')>", args=(), exc_info=raised("secret"))
    )
    assert "secret" not in line
    assert "\n" not in line
    assert "ValueError at " in line
    assert "test_logs.py:" in line


def test_libraries_that_quote_what_they_read_may_not_log(capsys: pytest.CaptureFixture[str]) -> None:
    root, before = logging.getLogger(), logging.getLogger().handlers[:]
    root.handlers.clear()
    try:
        set_up_logs("text", requests=True)
        for name in ("python_multipart.multipart", "somebody.else"):
            logging.getLogger(name).error("secret")
        logging.getLogger("headwise.server").info("public")
    finally:
        root.handlers[:] = before
    told = capsys.readouterr().err
    assert "public" in told
    assert "secret" not in told
