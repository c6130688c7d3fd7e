"""The server's log: one line per event, as text or as JSON, with the time and its offset from UTC."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime
from typing import Literal

LogFormat = Literal["text", "json"]


class TextLines(logging.Formatter):
    """Formats `time message`, the time as in ISO 8601."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{_time(record)} {super().format(record)}"


class JsonLines(logging.Formatter):
    """Formats one JSON object per line; the fields of a request stand beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds")


def set_up_logs(log_format: LogFormat, requests: bool) -> None:
    """Sends the log to standard error; without `requests`, only what concerns the server itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("headwise.access").setLevel(logging.INFO if requests else logging.WARNING)
    for noisy in ("uvicorn.error", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
