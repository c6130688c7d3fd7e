from __future__ import annotations

import torch

from headwise.interop.keys import Key, Orders, modules, without_prefix

ORDERS = Orders({"source": torch.tensor([3, 0, 1, 2]), "target": torch.tensor([1, 0])}, torch.tensor([2, 0, 3, 1]))


def test_every_transform_is_undone_on_the_way_back() -> None:
    cases = {
        Key("a", ("x",)): ([(5, 4)], (5, 4)),
        Key("a", ("x",), transposed=True): ([(5, 4)], (4, 5)),
        Key("a", ("x", "y", "z"), width=(1,)): ([(4, 4)] * 3, (12, 4)),
        Key("a", ("x", "y"), transposed=True): ([(5, 4)] * 2, (8, 5)),
        Key("a", ("x",), vocabulary="source", width=(1,)): ([(4, 4)], (4, 4)),
        Key("a", ("x",), vocabulary="target"): ([(2, 3)], (2, 3)),
        Key("a", ("x",), published=(1, -1), vocabulary="source"): ([(1, 4)], (4,)),
        Key("a", ("x",), published=(-1, 3, 2, 2)): ([(5, 3, 2, 2)], (5, 12)),
    }
    for key, (shapes, ours) in cases.items():
        assert key.fits(shapes, ours), key
        theirs = [torch.randn(shape) for shape in shapes]
        found = key.to_ours(theirs, ours, ORDERS)
        assert tuple(found.shape) == ours
        back = key.to_theirs(found, ORDERS)
        assert list(back) == list(key.theirs)
        assert all(torch.equal(one, other) for one, other in zip(theirs, back.values(), strict=True))
        storages = {x.untyped_storage().data_ptr() for x in back.values()}
        assert len(storages) == len(back), "each can be stored by itself"


def test_a_part_that_is_not_published_is_zero() -> None:
    """Whisper's keys have no bias; in ours, queries, keys and values share one vector of biases."""
    key = Key("a", ("q", "", "v"))
    assert key.names == ["q", "v"]
    assert key.fits([(2,), (2,)], (6,))
    found = key.to_ours([torch.ones(2), torch.full((2,), 2.0)], (6,), ORDERS)
    assert found.tolist() == [1, 1, 0, 0, 2, 2]
    assert {name: x.tolist() for name, x in key.to_theirs(found, ORDERS).items()} == {"q": [1, 1], "v": [2, 2]}


def test_shapes_that_do_not_fit_are_noticed() -> None:
    assert not Key("a", ("x", "y")).fits([(2, 3), (2, 4)], (4, 3))
    assert not Key("a", ("x",)).fits([()], (1,))
    assert not Key("a", ("x",)).fits([(3,)], None)
    assert not Key("a", ("x",), published=(1, -1)).fits([(2, 2)], (4,))
    assert not Key("a", ("x",), published=(1, -1)).fits([(1, 5)], (4,))


def test_the_key_of_a_layer_has_its_number() -> None:
    assert Key("a.{}", ("b.{}.c", "")).at(3) == Key("a.3", ("b.3.c", ""))


def test_rows_before_the_first_position_are_left_out_and_written_as_zeros() -> None:
    key, orders = Key("a", ("x",), positions=True), Orders({}, skipped=2)
    assert key.fits([(5, 3)], (3, 3), orders.skipped)
    assert not key.fits([(3, 3)], (3, 3), orders.skipped)
    theirs = torch.randn(5, 3)
    found = key.to_ours([theirs], (3, 3), orders)
    assert torch.equal(found, theirs[2:])
    back = key.to_theirs(found, orders)["x"]
    assert torch.equal(back[2:], theirs[2:])
    assert not back[:2].any()


def test_modules_have_a_weight_and_a_bias_each() -> None:
    keys = modules("ours.{}.", "theirs.{}.", {"a": "b", "c": ("d", "e")})
    assert [key.ours for key in keys] == [f"ours.{{}}.{name}.{kind}" for name in "ac" for kind in ("weight", "bias")]
    assert keys[3].at(2).theirs == ("theirs.2.d.bias", "theirs.2.e.bias")
    assert next(without_prefix(keys, "theirs.")).theirs == ("{}.b.weight",)
