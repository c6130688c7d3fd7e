"""The server's log: one line per event, as text or as JSON, with the time and its offset from UTC.

No text of a client gets into it. Libraries quote what they cannot read, so only some of them may log, and of their
messages only the first line; of an exception the log has its type and where it was raised, not its message.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime
from typing import Literal

MAY_LOG = ("headwise", "uvicorn", "asyncio")  # the first parts of loggers' names
LogFormat = Literal["text", "json"]


class TextLines(logging.Formatter):
    """Formats `time message`, the time as in ISO 8601."""

    def format(self, record: logging.LogRecord) -> str:
        raised = f" ({_raised(record)})" if record.exc_info else ""
        return f"{_time(record)} {_first_line(record)}{raised}"


class JsonLines(logging.Formatter):
    """Formats one JSON object per line; the fields of a request stand beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _first_line(record),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = _raised(record)
        return json.dumps(fields, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


def _first_line(record: logging.LogRecord) -> str:
    return record.getMessage().partition("\n")[0]


def _raised(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return "" if error is None else f"{type(error).__name__} at {place_of(error)}"


def place_of(error: BaseException) -> str:
    """Returns the file and line where an exception was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "unknown" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _may_log(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in MAY_LOG


def set_up_logs(log_format: LogFormat, requests: bool) -> None:
    """Sends the log to standard error; without `requests`, only what concerns the server itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_may_log)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("headwise.access").setLevel(logging.INFO if requests else logging.WARNING)
    for noisy in ("uvicorn.error", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
