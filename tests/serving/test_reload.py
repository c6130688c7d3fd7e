"""SIGHUP reads the models again: no request is lost, and a model that does not decode changes nothing."""

from __future__ import annotations

import asyncio
import http.client
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import ADDRESS, Client, Running, serving

from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import load_model, save_model
from headwise.text.tokenizer import TokenizerPair


@pytest.fixture
def link(word_model: Path, tmp_path: Path) -> Path:
    """A link to the model, which an upgrade sets to another one."""
    (tmp_path / "model").symlink_to(word_model)
    return tmp_path / "model"


@pytest.fixture
def new_model(word_model: Path, tmp_path: Path) -> Path:
    """The same model, but with 'Hund' and 'Katze' exchanged in its vocabulary."""
    directory = tmp_path / "new"
    bundle = open_bundle(word_model)
    copied = tmp_path / "copied"
    shutil.copytree(word_model, copied)
    text = (copied / "tokenizer.json").read_text()
    text = text.replace('"Hund"', '"-"').replace('"Katze"', '"Hund"').replace('"-"', '"Katze"')
    (copied / "tokenizer.json").write_text(text)
    save_model(directory, load_model(bundle), TokenizerPair.load(copied), family="transformer", languages=("en", "de"))
    return directory


def reload(running: Running, link: Path, to: Path) -> str:
    """Points the link to another model, sends SIGHUP, and waits for the verdict in the log."""
    fresh = link.with_name("fresh")
    fresh.symlink_to(to)
    fresh.replace(link)
    assert running.ask("GET", "/health").status == 200  # it is up, so it no longer ignores the signal
    before = len(running.log)
    running.process.send_signal(signal.SIGHUP)
    for _ in range(3000):
        verdicts = [line for line in running.log[before:] if "replaced" in line]
        if verdicts:
            return verdicts[0]
        time.sleep(0.02)
    raise AssertionError("".join(running.log))


async def ask_during_reload(running: Running, link: Path, to: Path) -> list[tuple[int, str]]:
    answers: list[tuple[int, str]] = []
    over = asyncio.Event()

    async def client() -> None:
        connection = Client(running.port)
        while not over.is_set():
            status, answer = await connection.post("/translate", {"q": "red dog", "source": "en", "target": "de"})
            answers.append((status, answer.get("translatedText", "")))
        connection.close()

    tasks = [asyncio.create_task(client()) for _ in range(8)]
    verdict = await asyncio.to_thread(reload, running, link, to)
    assert "the models are replaced: mine" in verdict
    over.set()
    await asyncio.gather(*tasks)
    return answers


def test_no_request_is_lost_while_a_model_is_replaced_and_rolled_back(
    link: Path, word_model: Path, new_model: Path
) -> None:
    with serving("--model", f"mine={link}", "--quiet") as running:
        for to, text in ((new_model, "rot Katze"), (word_model, "rot Hund")):
            answers = asyncio.run(ask_during_reload(running, link, to))
            assert {status for status, _ in answers} == {200}
            assert {text for _, text in answers} <= {"rot Hund", "rot Katze"}
            assert running.translate("red dog").json == {"translatedText": text}
        assert running.ask("GET", "/health/ready").status == 200
        assert running.stop() == 0


def test_a_damaged_model_does_not_replace_the_one_in_use(link: Path, word_model: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(word_model, damaged)
    (damaged / "model.safetensors").write_bytes(b"no weights")
    with serving("--model", f"mine={link}") as running:
        verdict = reload(running, link, damaged)
        assert "the models are not replaced: " in verdict
        assert "those from before stay in use" in verdict
        assert "damaged" in verdict
        assert running.translate("red dog").json == {"translatedText": "rot Hund"}
        # What is opened only now is of the model in use too: a glossary needs torch.
        assert "Vogel" in running.translate("red dog", glossary={"dog": "Vogel"}).json["translatedText"]


def test_a_terminal_that_is_closed_ends_the_server(word_model: Path) -> None:
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c",
         "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
         "os.execv(sys.executable, [sys.executable, '-m', 'headwise', 'serve', *sys.argv[1:]])",
         "--port", "0", "--model", str(word_model)],
        stdin=side, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    os.close(side)
    assert process.stderr is not None
    try:
        found = next(match for line in process.stderr if (match := ADDRESS.search(line)))
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
        connection.request("GET", "/health", headers={"Connection": "close"})
        assert connection.getresponse().status == 200
        os.close(main)
        assert process.wait(timeout=60) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.stderr.close()
