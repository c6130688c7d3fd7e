"""The log of requests: time zone, route templates, JSON, and the client's address behind a proxy."""

from __future__ import annotations

import json
import re
from pathlib import Path

from running import Running, serving

FORWARDED = {"X-Forwarded-For": "203.0.113.9, 198.51.100.7"}


def ask_around(running: Running) -> None:
    for path in ("/models", "/page/main.js", "/openapi.json", "/runs/secret-name", "/secret-path"):
        running.ask("GET", path, headers=FORWARDED)
    running.ask("GET", "/models", headers={"Host": "evil.example"})
    assert running.stop() == 0


def test_a_line_has_its_time_zone_and_the_template_of_the_route(word_model: Path) -> None:
    with serving("--model", word_model) as running:
        ask_around(running)
        lines = [line for line in running.log if " GET " in line]
    pattern = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (\S+) GET (\S+) (\d+) \d+\.\d ms\n"
    found = [match.groups() for line in lines if (match := re.fullmatch(pattern, line))]
    assert sorted(found) == [
        ("127.0.0.1", "/models", "200"),
        ("127.0.0.1", "/models", "403"),
        ("127.0.0.1", "/openapi.json", "200"),
        ("127.0.0.1", "/page/{file}", "200"),
        ("127.0.0.1", "/runs/{name}", "404"),
        ("127.0.0.1", "unknown", "404"),
    ]
    assert "secret" not in "".join(running.log)


def test_json_lines_have_fields_and_the_address_that_a_trusted_proxy_gives(word_model: Path) -> None:
    arguments = ("--log-format", "json", "--trusted-proxy", "127.0.0.1", "--trusted-proxy", "198.51.100.0/24")
    with serving("--model", word_model, *arguments) as running:
        ask_around(running)
        records = [json.loads(line) for line in running.log]
    assert all({"time", "level", "logger", "message"} <= set(record) for record in records)
    requests = [record for record in records if record["logger"] == "headwise.access"]
    assert {record["route"] for record in requests} >= {"/models", "/page/{file}"}
    assert sorted(record["client"] for record in requests) == ["127.0.0.1"] + ["203.0.113.9"] * 5
    assert {type(record["milliseconds"]) for record in requests} == {float}
