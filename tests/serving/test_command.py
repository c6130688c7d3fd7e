"""The command `headwise serve`: which calls it refuses before a model is opened, and its exit codes."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command
from running import KEY, serving


@pytest.fixture
def headwise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("HEADWISE_DEBUG", "")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("HEADWISE_API_KEY", raising=False)
    return Command(monkeypatch, capsys)


def _file(folder: Path, text: str, mode: int) -> Path:
    path = folder / "keys"
    path.write_text(text)
    path.chmod(mode)
    return path


REFUSED: list[tuple[Callable[[Path], list[Any]], str]] = [
    (lambda folder: ["--host", "0.0.0.0"], "can be reached from other machines: give --api-key-file FILE"),
    (lambda folder: ["--host", "::"], "can be reached from other machines"),
    (lambda folder: ["--host", "example.org"], "can be reached from other machines"),
    (lambda folder: ["--api-key", "short"], "at least 16 characters"),
    (lambda folder: ["--api-key-file", folder / "none"], "cannot be read: No such file"),
    (lambda folder: ["--api-key-file", _file(folder, KEY, 0o644)], "can be read by others: chmod 600"),
    (lambda folder: ["--api-key-file", _file(folder, "\n# nothing\n", 0o600)], "has no key in it"),
    (lambda folder: ["--api-key-file", _file(folder, f"{KEY}\nshort\n", 0o600)], "keys:2: a key must have"),
    (lambda folder: ["--allow-host", "http://a.b/"], "give a host name alone"),
    (lambda folder: ["--runs", folder / "none"], "there is no such folder"),
    (lambda folder: ["--model", folder / "none", "--port", "0"], "no model"),
    (lambda folder: ["--port", "99999"], "Invalid value for '--port'"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_a_wrong_call_is_one_line_and_exit_2(headwise: Command, tmp_path: Path, case: int) -> None:
    arguments, part = REFUSED[case]
    code, out, err = headwise("serve", *arguments(tmp_path))
    assert (code, out) == (2, "")
    assert part in err
    assert err.count("\n") == 1


def test_two_models_of_one_name_are_refused(headwise: Command, word_model: Path) -> None:
    code, _, err = headwise("serve", "--port", "0", "--model", f"a={word_model}", "--model", f"a={word_model}")
    assert (code, "two models are called 'a'" in err) == (2, True)


def test_a_port_in_use_is_reported(headwise: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, _, err = headwise("serve", "--port", other.getsockname()[1])
    assert code == 2
    assert "Address already in use; choose another --port" in err


def test_help_shows_examples(headwise: Command) -> None:
    code, out, _ = headwise("serve", "--help")
    assert code == 0
    for part in ("headwise serve --model run/model", "--api-key-file", "LibreTranslate", "/health/ready"):
        assert part in out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_exit_0(word_model: Path, number: int) -> None:
    with serving("--model", word_model, "--quiet") as running:
        assert running.ask("GET", "/models").json["models"][0]["name"] == word_model.name
        assert running.stop(number) == 0
        assert "GET /models" not in "".join(running.log)
