"""Draws docs/pictures/serve-*.png: the server's page in a real Chromium, with the models that come with Headwise.

    python docs/make_page_pictures.py [--picture photo.png] [--speech RUN/model talk.wav]
        [--vectors RUN/model lines.txt QUERY]

Without a file for it, the picture of a view stays as it is. Needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).with_name("pictures")
MODELS = ("multi30k-en-de", "multi30k-de-en", "shakespeare-char", "banking77", "fashion-mnist")
TEXT = "Two young girls in red dresses are running through the grass.\nA dog jumps over a fallen tree in the forest."
QUESTION = "My card has not arrived yet."
PROMPT = "ROMEO:\n"
SIZE = {"width": 1200, "height": 400}  # the height is that of the page


@contextmanager
def server(*others: str) -> Iterator[str]:
    models = [word for name in (*MODELS, *others) for word in ("--model", name)]
    process = subprocess.Popen(
        [sys.executable, "-m", "headwise", "serve", *models, "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        yield next(found[0] for line in process.stderr if (found := re.findall(r"http://[\w.:]+", line)))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def picture_of(browser: Any, address: str, view: str, name: str) -> Iterator[Any]:
    """A page with this view open; what it shows in the end is the picture."""
    page = browser.new_context(viewport=SIZE, locale="en-GB", color_scheme="light").new_page()
    page.goto(f"{address}/#/{view}")
    page.wait_for_selector("html[data-ready]", state="attached")
    yield page
    page.wait_for_timeout(800)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=PICTURES / f"serve-{name}.png", full_page=True)
    print(PICTURES / f"serve-{name}.png")


def choose_file(page: Any, button: str, file: str) -> None:
    with page.expect_file_chooser() as chooser:
        page.click(button)
    chooser.value.set_files(file)


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", help="a picture of a piece of clothing, as in Fashion-MNIST")
    parser.add_argument("--speech", nargs=2, help="a speech model, and a sound")
    parser.add_argument("--vectors", nargs=3, help="a model of sentence vectors, a text file, and a query")
    asked = parser.parse_args()
    others = [given[0] for given in (asked.speech, asked.vectors) if given]
    with server(*others) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        with picture_of(browser, address, "translate", "translate-light") as page:
            page.fill("#source-text", TEXT)
            page.locator("#output .token").nth(10).wait_for()
        with picture_of(browser, address, "generate", "generate-light") as page:
            page.fill("#prompt", PROMPT)
            page.fill("#seed", "1")
            page.click("#generate-run")
            page.wait_for_selector("#generate-continue:enabled")
        with picture_of(browser, address, "classify", "classify-light") as page:
            page.fill("#classify-text", QUESTION)
            page.click("#classify-run")
            page.click("#moved-box summary")
            page.locator("#moved bdi").first.wait_for()
        if asked.picture:
            with picture_of(browser, address, "classify", "picture-light") as page:
                page.select_option("#classify-model", "fashion-mnist")
                choose_file(page, "#picture-choose", asked.picture)
                page.click("#moved-box summary")
                page.locator("#moved canvas").wait_for()
        if asked.speech:
            with picture_of(browser, address, "transcribe", "transcribe-light") as page:
                choose_file(page, "#sound-choose", asked.speech[1])
                page.wait_for_selector("#transcribe-look:enabled")
        if asked.vectors:
            with picture_of(browser, address, "search", "search-light") as page:
                page.fill("#search-text", Path(asked.vectors[1]).read_text(encoding="utf-8"))
                page.fill("#search-query", asked.vectors[2])
                page.click("#search-run")
                page.locator("#search-answers li").first.wait_for()


if __name__ == "__main__":
    main()
