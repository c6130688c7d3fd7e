"""Windows of long sounds, and segments of what is heard in them."""

from __future__ import annotations

import numpy as np
from sounds import noise

from headwise.decoding.windows import Window, WindowReader, cues_of

RATE, BEGIN = 16_000, 100
ALL = -1e9


def reader(samples: np.ndarray, seconds: float = 2.0, silence: float = ALL) -> WindowReader:
    blocks = (samples[start : start + 3_000] for start in range(0, len(samples), 3_000))
    return WindowReader(blocks, round(seconds * RATE), silence)


def test_windows_cover_the_sound_from_wherever_the_last_one_was_left() -> None:
    samples = noise(5.0)
    read = reader(samples)
    first = read.next()
    assert first is not None
    assert (first.start, first.last) == (0, False)
    assert np.array_equal(first.samples, samples[:32_000])
    read.advance(10_000)
    second = read.next()
    assert second is not None
    assert np.array_equal(second.samples, samples[10_000:42_000])
    read.advance(len(second.samples))
    rest = read.next()
    assert rest is not None
    assert np.array_equal(rest.samples, samples[42_000:74_000])
    read.advance(len(rest.samples))
    end = read.next()
    assert end is not None
    assert end.last
    assert np.array_equal(end.samples, samples[74_000:])
    read.advance(10**9)
    assert read.next() is None
    assert read.position == len(samples)


def test_a_full_window_at_the_end_is_the_last() -> None:
    window = reader(noise(2.0)).next()
    assert window is not None
    assert window.last


def test_silence_is_skipped_and_counted() -> None:
    silent = np.zeros(20 * RATE, np.float32)
    read = reader(silent, silence=-60.0)
    assert read.next() is None
    assert read.skipped == read.position == len(silent)
    silent[15 * RATE :] = noise(5.0)
    read = reader(silent, silence=-60.0)
    window = read.next()
    assert window is not None
    assert 13 * RATE <= window.start <= 15 * RATE


def test_without_timestamps_a_window_ends_in_a_pause() -> None:
    samples = noise(5.0)
    samples[26_000:30_000] = 0
    read = reader(samples)
    window = read.next()
    assert window is not None
    assert 26_000 <= len(read.cut(window).samples) <= 30_000


def test_every_step_moves_on() -> None:
    read = reader(noise(1.0))
    read.next()
    read.advance(0)
    assert read.position > 0


WINDOW = Window(0, np.zeros(10 * RATE, np.float32), True)


def test_pairs_of_timestamps_separate_segments() -> None:
    tokens = [BEGIN, 5, 6, BEGIN + 100, BEGIN + 100, 7, BEGIN + 250]
    cues, used = cues_of(tokens, BEGIN, WINDOW)
    assert [(c.start, c.end, c.tokens) for c in cues] == [(0.0, 2.0, (5, 6)), (2.0, 5.0, (7,))]
    assert used == 10 * RATE


def test_a_segment_without_an_end_is_heard_again_in_the_next_window() -> None:
    cues, used = cues_of([BEGIN, 5, BEGIN + 100, BEGIN + 100, 7, 8], BEGIN, WINDOW)
    assert [(c.start, c.end, c.tokens) for c in cues] == [(0.0, 2.0, (5,))]
    assert used == 2 * RATE


def test_one_segment_takes_the_whole_window() -> None:
    assert cues_of([BEGIN, 5, BEGIN + 100], BEGIN, WINDOW) == (
        [cues_of([BEGIN, 5, BEGIN + 100], BEGIN, WINDOW)[0][0]],
        160_000,
    )
    cues, used = cues_of([BEGIN + 50, 5], BEGIN, WINDOW)
    assert (cues[0].start, cues[0].end, cues[0].tokens, used) == (1.0, 10.0, (5,), 160_000)
    cues, _ = cues_of([], BEGIN, WINDOW)
    assert cues[0].tokens == ()
