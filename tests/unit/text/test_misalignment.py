from __future__ import annotations

import numpy as np

from headwise.text.misalignment import Lengths


def lengths(count: int = 2000, missing: int | None = None, lost: int = 1) -> Lengths:
    """Targets a little longer than their sources; from line `missing` on, `lost` lines of the target are gone."""
    chance = np.random.default_rng(1)
    source = chance.integers(10, 200, count)
    target = (source * 1.1 + chance.normal(0, 4, count)).astype(int)
    if missing is not None:
        target = np.concatenate((target[:missing], target[missing + lost :], chance.integers(10, 200, lost)))
    found = Lengths()
    found.add(source.tolist(), target.tolist())
    return found


def test_lengths_of_translations_correlate_and_no_shift_is_seen() -> None:
    assert lengths().correlation() > 0.95  # type: ignore[operator]
    assert lengths().find_shift() is None


def test_a_lost_line_is_found_where_it_is_with_its_direction() -> None:
    shift = lengths(missing=800).find_shift()
    assert shift is not None
    assert abs(shift.first - 800) <= 10
    assert (shift.last, shift.lag) == (1999, -1)
    assert shift.before > 0.9 > 0.3 > shift.within


def test_a_shift_by_many_lines_has_no_lag_but_is_seen() -> None:
    shift = lengths(missing=800, lost=30).find_shift()
    assert shift is not None
    assert shift.lag is None
    assert abs(shift.first - 800) <= 200


def test_little_text_and_equal_lines_tell_nothing() -> None:
    assert lengths(300).find_shift() is None
    same = Lengths()
    same.add([5] * 10, [6] * 10)
    assert same.correlation() is None
    assert Lengths().correlation() is None
