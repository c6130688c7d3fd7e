from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from headwise.errors import UsageError
from headwise.text.listops import evaluate, expressions, main


def test_values_are_those_of_the_operations() -> None:
    assert evaluate("[MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]") == 5
    assert evaluate("[SM 9 8 7 ]") == 4
    assert evaluate("[MED 1 2 3 4 ]") == 2


def test_every_expression_has_its_length_its_value_and_its_depth() -> None:
    found = list(expressions(60, 1, shortest=40, longest=90, deepest=4))
    for one in found:
        tokens = one.text.split()
        assert 40 <= len(tokens) <= 90
        assert evaluate(one.text) == one.value
        depths, depth = [], 0
        for token in tokens:
            depth += token.startswith("[") - (token == "]")
            depths.append(depth)
        assert depth == 0
        assert 1 <= max(depths) <= 4
    assert len({one.text for one in found}) == 60
    assert len(Counter(one.value for one in found)) >= 8
    assert max(len(one.text.split()) for one in expressions(20, 1)) > 1000


def test_the_seed_decides_everything() -> None:
    one, same, other = (list(expressions(5, seed, shortest=10, longest=20)) for seed in (7, 7, 8))
    assert one == same
    assert one != other
    assert list(expressions(3, 7, shortest=10, longest=20)) == one[:3]


def test_the_files_are_tables_of_texts_and_labels(tmp_path: Path) -> None:
    main([str(tmp_path), "--train", "30", "--held-out", "10", "--shortest", "10", "--longest", "30"])
    texts = set()
    for name, count in (("train", 30), ("val", 10), ("test", 10)):
        with (tmp_path / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == count
        assert all(evaluate(row["text"]) == int(row["label"]) for row in rows)
        texts |= {row["text"] for row in rows}
    assert len(texts) == 50, "no expression stands in two files"


@pytest.mark.parametrize("bounds", [{"shortest": 2}, {"shortest": 9, "longest": 8}, {"deepest": 0}])
def test_impossible_lengths_are_one_clear_line(bounds: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="at least 3 tokens"):
        next(expressions(1, 1, **bounds))


def test_a_wrong_call_of_the_command_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "out"), "--shortest", "50", "--longest", "10"])
    assert ended.value.code == 2
    assert not (tmp_path / "out").exists()
