"""The server's page in a real Chromium, against a real server process that shows runs made here."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running import serving

HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
RECIPE = '[training]\nsteps = 400\n\n[data]\nsource = "<b>not bold</b>"\n'

FAILED = "it did not learn: the loss went from 8.01 to 7.98; train longer, or try another training.learning_rate"


def record(step: int, **values: object) -> str:
    loss = 8.0 / (1 + step / 100)
    base = {"event": "train", "step": step, "epoch": 0, "tokens": 1800 * step, "loss": loss, "log_loss": loss,
            "perplexity": 2.7**loss, "rate": step / 1e5, "norm": 0.5, "padding": 0.1}  # fmt: skip
    return json.dumps({**base, **values}) + "\n"


def validation(step: int, output: str) -> str:
    samples = [["two dogs", "zwei Hunde", output]]
    return json.dumps({"event": "validation", "step": step, "log_loss": 2.5, "perplexity": 12.2, "bleu": 31.4,
                       "chrf": 55.5, "empty": 0.0, "samples": samples, "best": True}) + "\n"  # fmt: skip


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("failed", "live", "ended"):
        run = folder / name
        run.mkdir()
        (run / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        (run / "log.jsonl").write_text("".join(record(step) for step in range(10, 110, 10)), encoding="utf-8")
        times = [{"step": step, "seconds": step / 2, "tokens_per_second": 3600.0} for step in range(10, 110, 10)]
        (run / "times.jsonl").write_text("".join(json.dumps(time) + "\n" for time in times), encoding="utf-8")
    (folder / "ended" / "finished.json").write_text("{}", encoding="utf-8")
    with open(folder / "ended" / "log.jsonl", "a", encoding="utf-8") as log:  # a classifier's
        scores = {"log_loss": 0.5, "accuracy": 0.875, "macro_f1": 0.8625, "samples": []}
        log.write(json.dumps({"event": "validation", "step": 100, **scores}) + "\n")
    (folder / "failed" / "finished.json").write_text(json.dumps({"verdict": FAILED}), encoding="utf-8")
    with open(folder / "live" / ".lock", "w") as lock:  # as a run that is being trained holds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@pytest.fixture(scope="session")
def page_server(word_model: Path, language_model: Path, runs: Path) -> Iterator[str]:
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "headwise",
        "serve",
        "--model",
        word_model,
        "--model",
        language_model,
    ]
    command += ["--runs", runs, "--port", "0", "--quiet"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            break
    else:
        pytest.fail(f"the server did not start: {''.join(said)}")
    yield found[0]
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="session")
def task_server(
    classifier_model: Path, picture_model: Path, filler_model: Path, embedder_model: Path, speech_model: Path
) -> Iterator[str]:
    """A server with a model of each task that reads text, pictures or sound and writes no text of its own."""
    models = {"kinds": classifier_model, "stripes": picture_model, "gaps": filler_model, "vectors": embedder_model,
              "tones": speech_model}  # fmt: skip
    with serving(*(part for name, path in models.items() for part in ("--model", f"{name}={path}"))) as running:
        yield running.url


@contextmanager
def chromium_with(*arguments: str) -> Iterator[Any]:
    """A real browser; skips the test where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed (Debian: apt install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", *arguments])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium_with() as browser:
        yield browser


class Opened:
    """The page, what it complained of and whom it asked."""

    def __init__(self, browser: Any, server: str, view: str = "translate", **options: Any) -> None:
        settings = {"viewport": {"width": 1200, "height": 900}, "locale": "en-GB", **options}
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.expected: list[str] = []  # complaints that a test provoked
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(f"{server}/#/{view}")
        self.page.wait_for_selector("html[data-ready]", state="attached")

    def text(self, selector: str, expected: str) -> None:
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_contain_text(expected, timeout=20_000)

    def translate(self, text: str) -> None:
        self.page.fill("#source-text", text)

    def settled(self, translation: str) -> None:
        """Until this is what stands there, marks and all; what only screen readers read is left out."""
        self.page.wait_for_function(
            """text => [...document.querySelectorAll("#output :not(.unseen), #output")].length &&
               [...document.getElementById("output").childNodes].filter(n => n.className !== "unseen")
               .map(n => n.textContent).join("") === text""",
            arg=translation,
        )


@pytest.fixture
def opened(browser: Any, page_server: str) -> Iterator[Opened]:
    opened = Opened(browser, page_server)
    yield opened
    assert [p for p in opened.problems if not any(e in p for e in opened.expected)] == []
    assert [url for url in opened.requests if not url.startswith((page_server, "data:", "blob:", "about:"))] == []
    opened.context.close()
