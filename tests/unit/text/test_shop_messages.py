"""The generated messages: the same for a seed, labels in equal parts, held-out requests in no training message."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from pathlib import Path

import pytest

from headwise.errors import WorkFailed
from headwise.text.shop_messages import REQUESTS, THINGS, Message, messages, write_messages


def requests_in(found: list[Message]) -> set[str]:
    """Which request about which thing each message has."""
    known = [request.format(thing=thing) for label in REQUESTS for request in REQUESTS[label] for thing in THINGS]
    texts = "\n".join(message.text.lower() for message in found)
    return {one for one in known if one.lower() in texts}


def test_the_seed_decides_the_messages_and_no_message_occurs_twice() -> None:
    first = messages(1200, seed=3)
    assert messages(1200, seed=3) == first
    assert messages(1200, seed=4) != first
    assert len({message.text for message in first}) == 1200
    assert Counter(message.label for message in first) == dict.fromkeys(REQUESTS, 200)


def test_held_out_messages_ask_what_no_training_message_asks() -> None:
    training, unseen = messages(3000), messages(600, held_out=True)
    assert requests_in(unseen)
    assert not requests_in(training) & requests_in(unseen)


def test_a_message_may_name_the_subject_of_another_label() -> None:
    mentioned = [message for message in messages(600) if "the payment went through" in message.text.lower()]
    assert {message.label for message in mentioned} >= {"delivery", "repair", "visit"}
    assert "payment" not in {message.label for message in mentioned}


def test_the_files_have_columns_and_share_no_message(tmp_path: Path) -> None:
    files = write_messages(tmp_path, train=120, held_out=30)
    tables = {name: list(csv.DictReader(path.open(encoding="utf-8"))) for name, path in files.items()}
    assert {name: len(rows) for name, rows in tables.items()} == {"train": 120, "val": 30, "test": 30}
    texts = {name: {row["text"] for row in rows} for name, rows in tables.items()}
    assert not any(one & other for one, other in itertools.combinations(texts.values(), 2))


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkFailed, match="cannot write the messages"):
        write_messages(tmp_path / "file" / "corpus", train=6, held_out=6)
