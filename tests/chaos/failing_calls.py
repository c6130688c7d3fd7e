"""Saves a checkpoint and prepares text while one call to the disk fails: each in turn. test_failing_calls.py runs it.

Argument: folder to work in, which has a recipe. Runs with failing_calls.c loaded; each attempt is a fork of this
process. Prints a JSON object per attempt that ended badly, and at last one with the counts.
"""

from __future__ import annotations

import collections
import ctypes
import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from failing_disk import contents

from headwise.bundle.checkpoint import newest_good, open_checkpoint, save_checkpoint
from headwise.bundle.weights import save_model
from headwise.config import schema
from headwise.config.recipe import load_recipe
from headwise.errors import HeadwiseError
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair
from headwise.workflows.prepare import prepare

FAULTS = ((errno.EIO, False), (errno.ENOSPC, False), (errno.ENOSPC, True))  # the last: the disk stays full
shim = ctypes.CDLL(None)
shim.chaos_failed.restype = ctypes.c_char_p


def attempt(work: Callable[[], object], at: int, code: int, forever: bool) -> dict[str, Any]:
    """Does the work in a fork, whose call number `at` fails; says how many calls there were and how it ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        ended = "fine"
        shim.chaos_arm(at, code, forever)
        try:
            work()
        except HeadwiseError as error:
            ended = f"told: {error}"
        except BaseException as error:
            ended = f"raised: {error!r}"
        told = {"calls": shim.chaos_done(), "failed": shim.chaos_failed().decode(), "ended": ended}
        os.write(writing, json.dumps(told).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        content = answer.read()
    _, status = os.waitpid(child, 0)
    return json.loads(content) if content else {"ended": f"died: {os.waitstatus_to_exitcode(status)}", "failed": ""}


def each_call(what: str, work: Callable[[], object], reset: Callable[[], None], check: Callable[[], str]) -> None:
    """Lets every call of the work fail in turn, in every way; `check` says what is wrong with the state afterwards."""
    reset()
    calls = attempt(work, 0, 0, False)["calls"]
    kinds: collections.Counter[str] = collections.Counter()
    for at in range(1, calls + 1):
        for code, forever in FAULTS:
            reset()
            told = attempt(work, at, code, forever)
            kinds[f"{told['failed']} {told['ended'].partition(':')[0]}"] += 1
            wrong = check()
            one_line = told["ended"].startswith(("told: ", "fine")) and "\n" not in told["ended"]
            if wrong or not one_line:
                fault = {"what": what, "call": at, "error": errno.errorcode[code], "forever": forever}
                print(json.dumps({**fault, **told, "wrong": wrong}), flush=True)
    print(json.dumps({"what": what, "calls": calls, "attempts": calls * len(FAULTS), "kinds": kinds}), flush=True)


def saves(folder: Path) -> None:
    """The checkpoint before stays whole; the newest one is whole as well."""
    checkpoints = folder / "checkpoints"
    tokenizers = TokenizerPair.one(Tokenizer.train(["a b c d e"], schema.Tokenizer(kind="word", size=20)))
    sizes = {"model_dim": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 16}
    model = Transformer(source_vocab=tokenizers.source.size, **sizes)

    def save(step: int) -> Path:
        return save_checkpoint(
            checkpoints, step,
            lambda new: save_model(new, model, tokenizers, family="transformer", languages=("en", "de")),
            {"optimizer:x": torch.arange(3000.0)}, {"step": step},
        )  # fmt: skip

    first = save(1)
    before = contents(first)

    def check() -> str:
        damaged: list[HeadwiseError] = []
        newest = newest_good(checkpoints, damaged.append)
        if damaged or newest is None:
            return f"damaged: {damaged}"
        open_checkpoint(first)
        return "" if contents(first) == before else "the checkpoint before has changed"

    each_call("save", lambda: save(2), lambda: shutil.rmtree(checkpoints / "step-00000002", ignore_errors=True), check)


def preparation(folder: Path) -> None:
    """What was prepared before stays as it was, and the next attempt gives what it would have given."""
    recipe, base = load_recipe(folder / "recipe.toml")
    other, _ = load_recipe(folder / "recipe.toml", ["tokenizer.size=300"])
    cache, earlier, whole = folder / "cache", folder / "earlier", folder / "whole"
    source = {name: digest for name, digest in contents(base).items() if "/" not in name}
    prepare(other, base, earlier)
    before = contents(earlier)
    shutil.copytree(earlier, whole)
    prepare(recipe, base, whole)
    expected = contents(whole)

    def reset() -> None:
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(earlier, cache)

    def check() -> str:
        now = contents(cache)
        if any(now.get(name) != digest for name, digest in before.items()):
            return "what was prepared before has changed"
        if any(digest != hashlib.sha256((base / name).read_bytes()).hexdigest() for name, digest in source.items()):
            return "the text has changed"
        again = attempt(lambda: prepare(recipe, base, cache), 0, 0, False)["ended"]
        return "" if again == "fine" and contents(cache) == expected else f"the next attempt: {again}"

    each_call("preparing text", lambda: prepare(recipe, base, cache), reset, check)


if __name__ == "__main__":
    torch.set_num_threads(1)
    saves(Path(sys.argv[1]) / "saves")
    preparation(Path(sys.argv[1]))
