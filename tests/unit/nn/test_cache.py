from __future__ import annotations

import torch

from headwise.nn.cache import NO_CACHE, KeyValueCache


def test_cache_grows_and_follows_any_reorder() -> None:
    torch.manual_seed(0)
    cache = KeyValueCache(capacity=2)
    rows = torch.randn(3, 2, 9, 4)
    for t in range(5):
        key, value = cache.append(rows[:, :, t : t + 1], -rows[:, :, t : t + 1])
    torch.testing.assert_close(key, rows[:, :, :5])
    cache.reorder(torch.tensor([2, 2, 0, 1]))
    key, value = cache.append(rows[[2, 2, 0, 1], :, 5:9], -rows[[2, 2, 0, 1], :, 5:9])
    torch.testing.assert_close(key, rows[[2, 2, 0, 1]])
    torch.testing.assert_close(value, -rows[[2, 2, 0, 1]])


def test_its_contents_are_all_that_was_appended() -> None:
    cache, rows = KeyValueCache(), torch.randn(2, 3, 4, 5)
    cache.append(rows[:, :, :3], -rows[:, :, :3])
    cache.append(rows[:, :, 3:], -rows[:, :, 3:])
    key, value = cache.contents()
    assert torch.equal(key, rows)
    assert torch.equal(value, -rows)
    assert cache.length == 4


def test_no_cache_gives_back_what_it_gets_and_remembers_nothing() -> None:
    key, value = torch.randn(2, 1, 2, 3, 4)
    for _ in range(2):
        assert NO_CACHE.append(key, value) == (key, value)
        NO_CACHE.reorder(torch.tensor([0]))
    assert NO_CACHE.length == 0
