"""Generates the labelled messages of `headwise demo --task classify`: what customers write to a shop, and about what.

A message has a request, which decides the label, and often something beside it that is about another label but settled
('The payment went through, but the lamp is broken.'). So a model that answers by single words is wrong. Every held-out
message has a request about a thing (this sentence about that thing) that no training message has.
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from headwise.errors import WorkFailed
from headwise.files import write_whole

HELD_OUT_SHARE = 5  # one of so many pairs of a request and a thing is held out

THINGS = (
    "lamp", "kettle", "desk", "chair", "bicycle", "camera", "phone", "clock", "mirror", "carpet", "radio", "printer",
    "guitar", "tent", "backpack", "raincoat", "umbrella", "toaster", "fan", "heater", "bookcase", "keyboard", "drill",
    "ladder", "scooter", "telescope", "suitcase", "blender", "pillow", "sofa",
)  # fmt: skip

# What is asked, by label; and what is only mentioned: it names the label's subject, and says that it is settled.
REQUESTS = {
    "delivery": (
        "where is the {thing} that I ordered", "the {thing} has still not arrived", "when will the {thing} be here",
        "the driver left without handing over the {thing}", "please send the {thing} to my office instead",
        "I have been waiting for the {thing} for two weeks",
    ),
    "payment": (
        "I was charged twice for the {thing}", "my card was refused when I wanted to pay for the {thing}",
        "can I pay for the {thing} in three parts", "I need an invoice for the {thing}",
        "the amount on the bill for the {thing} is wrong", "may I pay cash for the {thing}",
    ),
    "refund": (
        "I want my money back for the {thing}", "I would like to return the {thing}",
        "please cancel the {thing} and give me back what I paid", "how do I send back the {thing}",
        "the {thing} does not fit, and I would rather have the money", "I have changed my mind about the {thing}",
    ),
    "repair": (
        "the {thing} is broken", "the {thing} stopped working after a day", "can somebody mend the {thing}",
        "a part of the {thing} is missing", "the {thing} makes a strange noise", "there is a crack in the {thing}",
    ),
    "order": (
        "I would like to buy a {thing}", "do you still have the {thing} in blue", "how much is the {thing}",
        "please put a {thing} aside for me", "is there a smaller {thing}", "I need one more {thing}",
    ),
    "visit": (
        "can I look at the {thing} in your shop on Sunday", "until when can I come by to see the {thing}",
        "on which floor do I find the {thing}", "may I bring the {thing} to your shop this evening",
        "is there a place to park near you, as the {thing} is heavy", "are you open on Monday, to try the {thing}",
    ),
}  # fmt: skip
SETTLED = {
    "delivery": ("the parcel arrived on time", "the driver was friendly", "I know when it will arrive"),
    "payment": ("the payment went through", "I have the invoice", "my card works again"),
    "refund": ("I got my money back for the other one", "I do not want a refund", "I would rather not send it back"),
    "repair": ("nothing is broken", "the crack has been mended", "it works well again"),
    "order": ("I already bought two of them", "the price is good", "I do not need another one"),
    "visit": ("I know your opening hours", "I found your shop at once", "I was in your shop on Monday"),
}
GREETINGS = ("", "", "Hello, ", "Good morning, ", "Dear team, ", "Hi, ")
ENDINGS = ("", "", " Thank you.", " Best regards.", " Please answer soon.", " It is urgent.")
JOINS = ("{settled}, but {request}", "{request}, although {settled}", "even though {settled}, {request}", "{request}")


class Message(NamedTuple):
    text: str
    label: str


def messages(count: int, seed: int = 1, *, held_out: bool = False) -> list[Message]:
    """Draws `count` different messages, the labels in turn; the seed decides which."""
    return list(islice(_different(random.Random(f"{seed} {held_out}"), held_out), count))


def _different(generator: random.Random, held_out: bool) -> Iterator[Message]:
    pairs = {label: [(request, thing) for request in requests for thing in THINGS
                     if _is_held_out(request, thing) == held_out] for label, requests in REQUESTS.items()}  # fmt: skip
    seen = set[str]()
    while True:
        for label, found in pairs.items():
            text = _write(generator, label, *generator.choice(found))
            while text in seen:
                text = _write(generator, label, *generator.choice(found))
            seen.add(text)
            yield Message(text, label)


def _is_held_out(request: str, thing: str) -> bool:
    return crc32(f"{request} {thing}".encode()) % HELD_OUT_SHARE == 0


def _write(generator: random.Random, label: str, request: str, thing: str) -> str:
    other = generator.choice([name for name in SETTLED if name != label])
    settled = generator.choice(SETTLED[other])
    body = generator.choice(JOINS).format(settled=settled, request=request.format(thing=thing))
    greeting = generator.choice(GREETINGS)
    start = body if greeting else body[0].upper() + body[1:]
    return f"{greeting}{start}.{generator.choice(ENDINGS)}"


def write_messages(folder: Path, *, train: int, held_out: int, seed: int = 1) -> dict[str, Path]:
    """Writes train.csv, val.csv and test.csv with the columns text and label; the last two are held out."""
    unseen = messages(2 * held_out, seed, held_out=True)
    parts = {"train": messages(train, seed), "val": unseen[:held_out], "test": unseen[held_out:]}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in parts.items():
            stream = io.StringIO()
            csv.writer(stream, lineterminator="\n").writerows([Message._fields, *rows])
            write_whole(folder / f"{name}.csv", stream.getvalue().encode())
    except OSError as problem:
        raise WorkFailed(
            f"{folder}: cannot write the messages ({problem.strerror}); choose another folder"
        ) from problem
    return {name: folder / f"{name}.csv" for name in parts}
