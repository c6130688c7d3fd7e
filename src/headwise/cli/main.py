"""The command `headwise`: one module a verb, loaded when it is called, so that `--help` is quick."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from headwise import __version__
from headwise.errors import HeadwiseError

# The verbs in the order of a first acquaintance. Each is the function of its name in headwise.cli.<verb>.
VERBS = ("demo", "check", "train", "translate", "evaluate", "score", "look", "export", "average")

app = typer.Typer(
    name="headwise",
    help="The Transformer of 'Attention Is All You Need' as a working tool: from your text to a trained model, to "
    "translations, and to a picture of what every head attends to.",
    epilog="Start with: headwise demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headwise {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if debug:
        os.environ["HEADWISE_DEBUG"] = "1"


def _register() -> None:
    for verb in VERBS:
        function: Callable[..., Any] = getattr(importlib.import_module(f"headwise.cli.{verb}"), verb)
        app.command(verb, no_args_is_help=False)(function)


def run() -> None:
    """Entry point: exit 0, 1 (the work failed) or 2 (the call was wrong), and one line for a user's mistake."""
    _register()
    try:
        app(standalone_mode=True)
    except HeadwiseError as error:
        if os.environ.get("HEADWISE_DEBUG"):
            raise
        line = " ".join(str(error).split())
        print(f"headwise: error: {line}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("headwise: stopped", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        # The reader of a pipe went away (head, less): nothing is wrong. Python must not flush into it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


if __name__ == "__main__":
    run()
