"""How much of its required phrases an output contains."""

from __future__ import annotations

import random

from headwise.decoding.options import Edges, Request, RequiredPhrase
from headwise.decoding.requirements import Requirements

A, B = RequiredPhrase(((10, 11, 12),)), RequiredPhrase(((20,),))
# 30 begins inside of a word, 31 ends a word; (31,) is a word of its own.
EDGES = Edges(continues=frozenset({30}), unfinished=frozenset({31, 10}))


def test_what_is_needed_counts_down_as_a_phrase_is_said_and_up_when_it_breaks_off() -> None:
    required = Requirements(Request(phrases=(A, B)))
    needed = [required.needed(tokens) for tokens in ([], [10], [10, 11], [10, 11, 12], [10, 11, 5], [20, 10, 11, 12])]
    assert needed == [4, 3, 2, 1, 4, 0]


def test_the_next_tokens_begin_a_phrase_or_go_on_with_one() -> None:
    required = Requirements(Request(phrases=(A, B)))
    assert required.next_tokens([]) == {10, 20}
    assert required.next_tokens([5, 10]) == {10, 11, 20}
    assert required.next_tokens([20, 10, 11, 12]) == set()


def test_a_phrase_listed_twice_must_come_twice() -> None:
    required = Requirements(Request(phrases=(B, B)))
    assert [required.needed(tokens) for tokens in ([20], [20, 5, 20])] == [1, 0]


def test_ordered_phrases_count_only_one_after_the_other() -> None:
    opened, closed = RequiredPhrase(((20,),), ordered=True), RequiredPhrase(((21, 22),), ordered=True)
    required = Requirements(Request(phrases=(opened, B, closed)))
    assert required.next_tokens([]) == {20}
    assert required.next_tokens([20]) == {20, 21}
    assert [required.needed(tokens) for tokens in ([21, 22], [20, 20, 21], [21, 22, 20, 20, 21, 22])] == [4, 1, 0]


def test_a_word_that_goes_on_is_another_word() -> None:
    required = Requirements(Request(phrases=(RequiredPhrase(((31,),)),), edges=EDGES))
    assert [required.needed(tokens) for tokens in ([31], [31, 30], [31, 5], [31, 30, 31])] == [0, 1, 0, 0]


def test_a_spelling_inside_of_a_word_does_not_count() -> None:
    required = Requirements(
        Request(
            phrases=(
                RequiredPhrase(
                    ((5, 6), (30, 6)),
                ),
            ),
            edges=EDGES,
        )
    )
    assert [required.needed(tokens) for tokens in ([30, 6], [7, 30, 6], [31, 30, 6], [31, 5, 6])] == [0, 0, 2, 0]


def test_added_tokens_are_judged_as_if_the_whole_were_looked_at() -> None:
    chance = random.Random(1)
    required = Requirements(Request(phrases=(A, B, RequiredPhrase(((31,), (30, 31)))), edges=EDGES))
    for _ in range(300):
        said = [chance.choice([5, 10, 11, 12, 20, 30, 31]) for _ in range(chance.randint(0, 8))]
        follow = [5, 10, 11, 12, 20, 30, 31]
        assert required.after_each(said, follow) == [required.needed([*said, token]) for token in follow]


def test_what_is_said_step_by_step_is_judged_like_the_whole() -> None:
    """A search asks for ever longer sequences, of which only the end is scanned again."""
    chance = random.Random(2)
    phrases = (A, B, B, RequiredPhrase(((31,), (30, 31)), whole=False), RequiredPhrase(((12, 20),), ordered=True))
    request = Request(phrases=phrases, edges=EDGES)
    for _ in range(50):
        stepwise, said = Requirements(request), list[int]()
        for _ in range(25):
            said = [*said, chance.choice([5, 10, 11, 12, 20, 30, 31])]
            assert stepwise.needed(said) == Requirements(request).needed(said)
            assert stepwise.next_tokens(said) == Requirements(request).next_tokens(said)
