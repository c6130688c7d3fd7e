from __future__ import annotations

import torch

from headwise.nn.cache import NO_CACHE, KeyValueCache, SegmentMemory, WindowCache


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


def test_a_window_cache_keeps_the_last_tokens_and_shows_them_with_the_new_ones() -> None:
    cache, rows = WindowCache(3), torch.randn(2, 1, 8, 4)
    for first, last, begin in ((0, 2, 0), (2, 3, 0), (3, 4, 0), (4, 8, 1)):
        key, value = cache.append(rows[:, :, first:last], -rows[:, :, first:last])
        assert torch.equal(key, rows[:, :, begin:last])
        assert torch.equal(value, -key)
    cache.reorder(torch.tensor([1, 1, 0]))
    key, _ = cache.append(rows[[1, 1, 0], :, :1], rows[[1, 1, 0], :, :1])
    assert torch.equal(key[:, :, :3], rows[[1, 1, 0], :, 5:])
    assert cache.length == 9
    key, _ = WindowCache(0).append(rows, rows)
    assert torch.equal(key, rows)


def test_a_segment_memory_joins_and_forgets() -> None:
    memory, x = SegmentMemory(3), torch.randn(2, 7, 4, requires_grad=True)
    assert torch.equal(memory.join(x[:, :2]), x[:, :2])
    assert torch.equal(memory.join(x[:, 2:6]), x[:, :6])
    memory.reorder(torch.tensor([1]))
    joined = memory.join(x[1:, 6:])
    assert torch.equal(joined, x[1:, 3:])
    (grad,) = torch.autograd.grad(joined.sum(), x)
    assert not grad[:, :6].any()
    assert memory.length == 7
