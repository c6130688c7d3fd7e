"""`headwise serve`: serves models over HTTP, with a page for the browser."""

from __future__ import annotations

import logging
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from headwise.errors import UsageError


def serve(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="[NAME=]DIR",
            help="Model directory; may be repeated. [default: the models that come with Headwise]",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option("--host", help="Address to listen on; an address that other machines can reach requires a key."),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", "-p", min=0, max=65535, help="Port to listen on; 0 picks a free port and prints it."),
    ] = 8000,
    api_key: Annotated[
        list[str] | None,
        typer.Option(
            "--api-key",
            envvar="HEADWISE_API_KEY",
            help="Key that requests must send; may be repeated. Other users of this machine can see it; prefer a file.",
            show_envvar=True,
        ),
    ] = None,
    api_key_file: Annotated[
        Path | None, typer.Option("--api-key-file", help="File of keys, one per line, readable only by you.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Host name that clients or a proxy use for this server; may be repeated.",
        ),
    ] = None,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Folder of training runs, or one run, for the page to show.")
    ] = None,
    engine: Annotated[
        Literal["auto", "torch", "ctranslate2"],
        typer.Option("--engine", help="What runs the models; auto: the fast one where it can."),
    ] = "auto",
    precision: Annotated[
        Literal["int8", "float32"], typer.Option("--precision", help="Precision of the ctranslate2 engine.")
    ] = "int8",
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds until a request is answered with 504.")
    ] = 60.0,
    queue: Annotated[
        int,
        typer.Option("--queue", min=1, help="Requests that may wait for a model; further ones are answered with 429."),
    ] = 128,
    slots: Annotated[
        int, typer.Option("--slots", min=1, max=64, help="Texts that a language model generates at the same time.")
    ] = 4,
    grace: Annotated[
        float, typer.Option("--grace", min=0, help="Seconds that a shutdown waits for accepted requests.")
    ] = 20.0,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="Address or network of a proxy whose X-Forwarded-For is used in the log; may be repeated.",
        ),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"], typer.Option("--log-format", help="One line per request, as text or as JSON.")
    ] = "text",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not log requests.")] = False,
) -> None:
    """Serve models over HTTP, with a page to use them in the browser.

    Listens on this machine only, unless --host is given. Requests that arrive together are decoded in one batch, with
    the same results as alone. On SIGTERM or Ctrl-C, accepted requests are finished first. On SIGHUP the models are read
    again from their directories, while requests are answered. Neither texts nor keys are logged.

    What the models can do decides which routes and which views of the page there are. Clients of LibreTranslate
    (`/translate`, `/languages`, `/detect`) and OpenAI (`/v1/completions`, `/v1/embeddings`, `/v1/audio/transcriptions`)
    work unchanged; `/openapi.json` describes all routes; `/health/ready` and `/metrics` are for monitoring.

    Examples:

    - `headwise serve --model run/model` and open http://127.0.0.1:8000
    - `headwise serve --model en-de=runs/a/model --model story=runs/b/model --runs runs`
    - `headwise serve --host 0.0.0.0 --allow-host mt.example.org --api-key-file keys.txt`
    - `curl -d q="A dog." -d source=en -d target=de http://127.0.0.1:8000/translate`
    """
    from headwise.serving.access import check_proxies, read_access_rules
    from headwise.serving.limits import Limits

    access = read_access_rules(host, api_key or (), api_key_file, allow_host or ())
    proxies = check_proxies(trusted_proxy or ())
    if runs is not None and not runs.is_dir():
        raise UsageError(f"--runs {runs}: there is no such folder")
    from headwise.serving.app import Service
    from headwise.serving.logs import set_up_logs
    from headwise.serving.server import listen
    from headwise.serving.server import run as run_server
    from headwise.workflows.serve import open_models

    set_up_logs(log_format, requests=not quiet)
    if not sys.stdin.isatty():  # a closed terminal sends the same signal, and must end the server
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the models are there, there is nothing to read again
    tell = logging.getLogger("headwise.server").info if log_format == "json" else _print
    reopen = partial(open_models, model or (), engine, precision, tell)
    with listen(host, port) as listening:  # before the models are opened, to report a port in use at once
        limits = Limits(queue=queue, slots=slots, timeout=timeout, grace=grace)
        service = Service(reopen(), access, limits, runs)
        address, number = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        tell(f"Headwise is at http://{shown}:{number} (press Ctrl-C to stop)")
        run_server(service, listening, reopen, proxies)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
