"""The command `headwise`: one module per verb, which imports what it needs when it is called, so `--help` is quick."""

from __future__ import annotations

import errno
import functools
import importlib
import keyword
import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from headwise import __version__
from headwise.config.ranks import Ranks
from headwise.errors import HeadwiseError
from headwise.files import shortened

# The verbs, in the order in which a new user needs them. Each is the function of its name in headwise.cli.<verb>; a
# verb that is a keyword of Python has an underscore behind.
VERBS = (
    "demo", "check", "init", "train", "translate", "generate", "transcribe", "classify", "fill", "embed", "evaluate",
    "score", "look", "serve", "import", "export", "average", "plot", "models", "info",
)  # fmt: skip
# What typer raises for a wrong argument: click's UsageError, wherever typer has click.
_WrongCall: Any = typer.BadParameter.__base__

app = typer.Typer(
    name="headwise",
    help="The Transformer of 'Attention Is All You Need' as a working tool: train a model on your text, translate and "
    "generate text with it, and see what every head attends to.",
    epilog="Start with: headwise demo",
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


@functools.cache  # once per process
def _register() -> None:
    for verb in VERBS:
        app.command(verb)(_stoppable(function_of(verb)))


def function_of(verb: str) -> Callable[..., Any]:
    """The function behind a verb."""
    name = f"{verb}_" if keyword.iskeyword(verb) else verb
    found: Callable[..., Any] = getattr(importlib.import_module(f"headwise.cli.{name}"), name)
    return found


def _stoppable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Handles Ctrl-C and a closed pipe before typer does."""

    @functools.wraps(function)
    def verb(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except KeyboardInterrupt:
            print("headwise: stopped", file=sys.stderr)
            raise typer.Exit(128 + signal.SIGINT) from None
        except BrokenPipeError:
            # head and less close the pipe early, which is not an error. Python must not flush into it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(128 + signal.SIGPIPE) from None

    return verb


def run() -> None:
    """Entry point: exit 0, 1 (the work failed) or 2 (the call was wrong), and one line for a user's mistake."""
    _register()
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except HeadwiseError as error:
        if os.environ.get("HEADWISE_DEBUG"):
            raise
        _fail(str(error), error.exit_code)
    except _WrongCall as error:
        verb = f" {error.ctx.info_name}" if error.ctx is not None and error.ctx.info_name in VERBS else ""
        message = error.format_message().replace("Value error, ", "")  # what typer puts before a wrong choice
        _fail(f"{message} (see headwise{verb} --help)", error.exit_code)
    except OSError as error:  # a file that was not checked before: a user's mistake too, reported in one line
        if os.environ.get("HEADWISE_DEBUG"):
            raise
        place = f"{shortened(str(error.filename))}: " if error.filename is not None else ""
        _fail(f"{place}{error.strerror or error}", 2 if error.errno == errno.ENAMETOOLONG else 1)
    except (MemoryError, RuntimeError) as error:  # of torch: a RuntimeError
        if os.environ.get("HEADWISE_DEBUG") or not _out_of_memory(error):
            raise
        _fail("there is not enough memory for this; lower training.batch_tokens, the model's sizes, or the input", 1)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or any(
        words in str(error).lower() for words in ("can't allocate memory", "out of memory")
    )


def _fail(message: str, code: int) -> NoReturn:
    ranks = Ranks.of_environment()
    name = f"rank {ranks.rank}: " if ranks.size > 1 else ""
    print(f"headwise: error: {name}{' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    run()
