"""Draws docs/pictures/serve-*.png: the server's page in a real Chromium, with the models that come with Headwise.

    python docs/make_page_pictures.py --runs RUNS [--writer RUN/model]

The training view shows the first run in RUNS; without a language model (--writer) the picture of the writing view stays
as it is. Needs Chromium and playwright.
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
WIDE, PHONE = {"width": 1200, "height": 820}, {"width": 400, "height": 860}


@contextmanager
def server(arguments: argparse.Namespace) -> Iterator[str]:
    names = ["multi30k-en-de", "multi30k-de-en", *([arguments.writer] if arguments.writer else [])]
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


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--writer", help="a language model")
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


if __name__ == "__main__":
    main()
