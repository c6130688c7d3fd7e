from __future__ import annotations

from headwise.decoding.item_batches import similar


def test_every_item_is_in_one_batch_of_similar_size() -> None:
    costs = [5, 100, 7, 90, 6]
    batches = similar(costs, rows=2, cost=1000)
    assert batches == [[1, 3], [2, 4], [0]]
    assert sorted(place for batch in batches for place in batch) == list(range(5))


def test_a_batch_has_at_most_so_much_padding_and_at_least_one_item() -> None:
    assert [len(batch) for batch in similar([10] * 8, cost=35)] == [3, 3, 2]
    assert similar([50], cost=10) == [[0]]
    assert similar([]) == []
