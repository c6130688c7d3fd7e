"""How a record of the log is formatted."""

from __future__ import annotations

import json
import logging
from datetime import datetime

from headwise.serving.logs import JsonLines, TextLines


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


def test_json_has_the_traceback_of_an_exception_in_one_field() -> None:
    try:
        raise ValueError("x")
    except ValueError as error:
        line = JsonLines().format(record(exc_info=(type(error), error, error.__traceback__)))
    assert "ValueError: x" in json.loads(line)["exception"]
