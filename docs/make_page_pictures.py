"""Draws docs/pictures/serve-*.png: the server's page in a real Chromium, with the models that come with Headwise.

    python docs/make_page_pictures.py --runs RUNS [--writer RUN/model] [--pictures RUN/model photo.png]
        [--speech RUN/model talk.wav] [--vectors RUN/model lines.txt QUERY]

The training view shows the first run in RUNS. Without a model for it, the picture of a view stays as it is. Needs
Chromium and playwright.
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
TEXT = "Two young girls in red dresses are running through the grass.\nA dog jumps over a fallen tree in the forest."
QUESTION = "My card has not arrived yet."
WIDE, PHONE = {"width": 1200, "height": 820}, {"width": 400, "height": 860}


@contextmanager
def server(arguments: argparse.Namespace) -> Iterator[str]:
    others = [given[0] for given in (arguments.pictures, arguments.speech, arguments.vectors) if given]
    writer = [arguments.writer] if arguments.writer else []
    names = ["multi30k-en-de", "multi30k-de-en", "banking77", *writer, *others]
    models = [word for name in names for word in ("--model", name)]
    command = [sys.executable, "-m", "headwise", "serve", *models, "--runs", arguments.runs, "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield next(found[0] for line in process.stderr if (found := re.findall(r"http://[\w.:]+", line)))
    finally:
        process.terminate()
        process.wait()


def take(browser: Any, address: str, view: str, name: str, scheme: str = "light", **options: Any) -> None:
    settings = {"viewport": WIDE, "locale": "en-GB", "color_scheme": scheme, **options}
    page = browser.new_context(**settings).new_page()
    page.goto(f"{address}/#/translate")
    page.wait_for_selector("html[data-ready]", state="attached")
    page.fill("#source-text", TEXT)
    page.locator("#output .token").nth(10).wait_for()
    if view == "look":
        page.click("#translate-look")
        page.wait_for_selector("#look-place iframe, #look-place svg, #look-place canvas")
    elif view != "translate":
        page.click(f"#tab-{view}")
    if view == "generate":
        page.fill("#prompt", "ROMEO:\n")
        page.click("#generate-run")
    page.wait_for_timeout(4000 if view != "translate" else 800)
    page.screenshot(path=PICTURES / f"serve-{name}.png")
    print(PICTURES / f"serve-{name}.png")


def take_file(browser: Any, address: str, view: str, file: str, name: str, scheme: str, **options: Any) -> None:
    """The view of a picture or a sound, after the file was chosen."""
    settings = {"viewport": WIDE, "locale": "en-GB", "color_scheme": scheme, **options}
    page = browser.new_context(**settings).new_page()
    page.goto(f"{address}/#/{view}")
    page.wait_for_selector("html[data-ready]", state="attached")
    with page.expect_file_chooser() as chooser:
        page.click("#picture-choose" if view == "classify" else "#sound-choose")
    chooser.value.set_files(file)
    page.locator("#classify-answers .bars" if view == "classify" else "#segments button").first.wait_for()
    if view == "classify":
        page.click("#moved-box summary")
    page.wait_for_timeout(3000)
    page.screenshot(path=PICTURES / f"serve-{name}.png")
    print(PICTURES / f"serve-{name}.png")


def take_label(browser: Any, address: str, text: str) -> None:
    """The view of a text that is classified; a classifier of pictures must not be served beside it."""
    page = browser.new_context(viewport=WIDE, locale="en-GB", color_scheme="light").new_page()
    page.goto(f"{address}/#/classify")
    page.wait_for_selector("html[data-ready]", state="attached")
    page.fill("#classify-text", text)
    page.click("#classify-run")
    page.click("#moved-box summary")
    page.locator("#moved bdi").first.wait_for()
    page.screenshot(path=PICTURES / "serve-classify-light.png")
    print(PICTURES / "serve-classify-light.png")


def take_search(browser: Any, address: str, file: str, query: str) -> None:
    page = browser.new_context(viewport=WIDE, locale="en-GB", color_scheme="light").new_page()
    page.goto(f"{address}/#/search")
    page.wait_for_selector("html[data-ready]", state="attached")
    page.fill("#search-text", Path(file).read_text(encoding="utf-8"))
    page.fill("#search-query", query)
    page.click("#search-run")
    page.locator("#search-answers li").first.wait_for()
    page.screenshot(path=PICTURES / "serve-search-light.png")
    print(PICTURES / "serve-search-light.png")


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--writer", help="a language model")
    parser.add_argument("--pictures", nargs=2, help="a classifier of pictures, and a picture")
    parser.add_argument("--speech", nargs=2, help="a speech model, and a sound")
    parser.add_argument("--vectors", nargs=3, help="a model of sentence vectors, a text file, and a query")
    arguments = parser.parse_args()
    with server(arguments) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for view in ("translate", "training"):
            for scheme in ("light", "dark"):
                take(browser, address, view, f"{view}-{scheme}", scheme)
        take(browser, address, "look", "look-light")
        take(browser, address, "translate", "phone-zh", viewport=PHONE, locale="zh-CN")
        if arguments.writer:
            take(browser, address, "generate", "generate-dark", "dark")
        if not arguments.pictures:
            take_label(browser, address, QUESTION)
        else:
            take_file(browser, address, "classify", arguments.pictures[1], "picture-light", "light")
        if arguments.speech:
            take_file(browser, address, "transcribe", arguments.speech[1], "transcribe-light", "light")
            take_file(browser, address, "transcribe", arguments.speech[1], "transcribe-phone", "dark", viewport=PHONE)
        if arguments.vectors:
            take_search(browser, address, *arguments.vectors[1:])


if __name__ == "__main__":
    main()
