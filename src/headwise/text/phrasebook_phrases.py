"""The parts of phrasebook sentences: people, things with their measure words, tenses, and the held-out combinations."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from headwise.text import phrasebook_words as words
from headwise.text.phrasebook_words import PLURAL, THIRD, Noun, Person, Phrase, Verb


class Thing(NamedTuple):
    english: str
    chinese: str
    plural: bool


class Tense(NamedTuple):
    """How a tense is expressed; three English forms each, by agreement. A verb's forms fill the braces."""

    statement: tuple[str, str, str]
    question: tuple[str, str, str]
    negation: tuple[str, str, str]
    rest: str  # what follows the auxiliary verb in questions and negations
    marker: str
    ending: str
    negator: str  # of the Chinese verb
    times: tuple[Phrase, ...]


NOTHING = (Phrase("", ""),)
_DO, _DO_NOT = ("do", "do", "does"), ("don't", "don't", "doesn't")
_AM, _AM_NOT = ("am", "are", "is"), ("am not", "are not", "is not")
_AM_DOING = ("am {ing}", "are {ing}", "is {ing}")
_WANT = ("want to {base}", "want to {base}", "wants to {base}")
PAST = Tense(("{past}",) * 3, ("did",) * 3, ("didn't",) * 3, "{base}", "", "了", "没", words.PAST_TIMES)
PROGRESSIVE = Tense(_AM_DOING, _AM, _AM_NOT, "{ing}", "正在", "", "没在", (*NOTHING, Phrase(" now", "现在")))
FUTURE = Tense(("will {base}",) * 3, ("will",) * 3, ("won't",) * 3, "{base}", "会", "", "不会", words.FUTURE_TIMES)
WISH = Tense(_WANT, _DO, _DO_NOT, "want to {base}", "想", "", "不想", NOTHING)
HABIT = Tense(("{base}", "{base}", "{third}"), _DO, _DO_NOT, "{base}", "", "", "不", words.FREQUENCIES)


def conjugate(forms: Iterable[str], verb: Verb) -> list[str]:
    return [form.format(base=verb.base, third=verb.third, past=verb.past, ing=verb.ing) for form in forms]


def _the_person(noun: Noun, *, plural: bool) -> Person:
    if plural:
        return Person(f"the {noun.plural}", f"那些{noun.chinese}", PLURAL)
    return Person(f"the {noun.singular}", f"那{noun.measure}{noun.chinese}", THIRD)


_FAMILY = tuple(
    Person(f"{owner.english} {member.english}", f"{owner.chinese}{member.chinese}", THIRD)
    for member in words.FAMILY
    for owner in words.OWNERS
)
KNOWN_PEOPLE = tuple(_the_person(noun, plural=plural) for noun in words.PEOPLE for plural in (False, True))
# Nobody is in both lists, so nobody gives something to himself.
GIVERS = words.PRONOUNS + words.NAMES
RECEIVERS = _FAMILY + KNOWN_PEOPLE
SUBJECTS = GIVERS + RECEIVERS


def _thing(determiner: str, chinese: str, noun: Noun, adjective: Phrase | None, *, plural: bool) -> Thing:
    name = noun.plural if plural else noun.singular
    if adjective is not None:
        name, chinese = f"{adjective.english} {name}", chinese + adjective.chinese
    if noun.container is not None and determiner:
        name = f"{noun.container[plural]} of {name}"
    if determiner == "a" and name[0] in "aeiou":
        determiner = "an"
    return Thing(f"{determiner} {name}".lstrip(), chinese + noun.chinese, plural)


def _looks(noun: Noun, plain: bool) -> tuple[Phrase | None, ...]:
    return (None,) if plain else (None, *words.ADJECTIVES[noun.kind])


def counted(noun: Noun, *, plain: bool = False) -> Iterator[Thing]:
    for look in _looks(noun, plain):
        yield _thing("a", f"一{noun.measure}", noun, look, plural=False)
        for number in words.NUMBERS:
            yield _thing(number.english, number.chinese + noun.measure, noun, look, plural=True)
        yield _thing("several", f"几{noun.measure}", noun, look, plural=True)
        if noun.container is None:
            yield _thing("some", "一些", noun, look, plural=True)
            yield _thing("many", "很多", noun, look, plural=True)


def definite(noun: Noun, *, plain: bool = False) -> Iterator[Thing]:
    for look in _looks(noun, plain):
        yield _thing("the", f"那{noun.measure}", noun, look, plural=False)
        yield _thing("this", f"这{noun.measure}", noun, look, plural=False)
        if noun.container is None:
            yield _thing("the", "那些", noun, look, plural=True)
            yield _thing("these", "这些", noun, look, plural=True)
            # 我的红色的帽子 is correct but heavy: an owner is used only where no second 的 is needed.
            if look is None or not look.chinese.endswith("的"):
                for owner in words.OWNERS:
                    yield _thing(owner.english, f"{owner.chinese}的", noun, look, plural=False)


def bare(noun: Noun) -> Iterator[Thing]:
    for look in _looks(noun, plain=False):
        yield _thing("", "", noun, look, plural=True)


def how_many(noun: Noun) -> Iterator[Thing]:
    for look in _looks(noun, plain=False):
        yield _thing("", f"多少{noun.measure}", noun, look, plural=True)


def plain_counted(noun: Noun) -> Iterator[Thing]:
    return counted(noun, plain=True)


def plain_things(noun: Noun) -> Iterator[Thing]:
    yield from counted(noun, plain=True)
    yield from definite(noun, plain=True)


def any_thing(noun: Noun) -> Iterator[Thing]:
    yield from counted(noun)
    yield from definite(noun)


def specific(noun: Noun) -> Iterator[Thing]:
    for look in _looks(noun, plain=False):
        yield _thing("the", f"那{noun.measure}", noun, look, plural=False)
        yield _thing("the", "那些", noun, look, plural=True)
        for number in words.NUMBERS:
            yield _thing(f"the {number.english}", f"那{number.chinese}{noun.measure}", noun, look, plural=True)


@cache
def _things_of(make: Callable[[Noun], Iterator[Thing]], name: str) -> tuple[Thing, ...]:
    return tuple(make(words.NOUNS[name]))


def things(make: Callable[[Noun], Iterator[Thing]], names: Iterable[str]) -> list[Thing]:
    return [thing for name in names for thing in _things_of(make, name)]


@cache
def reserved_combinations() -> frozenset[tuple[str, str]]:
    """Returns the (verb, object), (verb, place) and (landmark, thing) pairs that training never sees in one sentence.

    They do not depend on the seed of a phrasebook: held-out text of one seed is held out for the training text of
    every seed.
    """
    verbs = (*words.VERBS, *words.GIVING_VERBS)
    return frozenset(
        _reserve({verb.base: verb.objects for verb in verbs})
        | _reserve({verb.base: tuple(words.PLACES) for verb in words.VERBS})
        | _reserve(dict.fromkeys(words.LANDMARKS, words.SMALL_THINGS))
    )


def _reserve(companions: dict[str, tuple[str, ...]]) -> set[tuple[str, str]]:
    """Reserves about a sixth of each head's companions, by a stable hash; a companion keeps two thirds of its heads."""
    pairs = [(head, name) for head, names in companions.items() for name in names]
    wanted = {head: max(1, round(len(names) / 6)) for head, names in companions.items()}
    available = {name: heads // 3 for name, heads in Counter(name for _, name in pairs).items()}
    chosen: set[tuple[str, str]] = set()
    for head, name in sorted(pairs, key=lambda pair: hashlib.blake2b("/".join(pair).encode()).digest()):
        if wanted[head] and available[name]:
            wanted[head] -= 1
            available[name] -= 1
            chosen.add((head, name))
    return chosen


def free_names(names: Iterable[str], *heads: str) -> list[str]:
    reserved = reserved_combinations()
    return [name for name in names if not any((head, name) in reserved for head in heads)]


class Split(NamedTuple):
    """Which companions a word may have: in training those that are free, in held-out text those that are reserved."""

    held_out: bool

    def companions(self, names: Iterable[str], head: str) -> list[str]:
        reserved = reserved_combinations()
        return [name for name in names if ((head, name) in reserved) == self.held_out]

    def objects(self, verb: Verb, make: Callable[[Noun], Iterator[Thing]]) -> list[Thing]:
        return things(make, self.companions(verb.objects, verb.base))

    def places(self, verb: Verb) -> list[Phrase]:
        """Lists the places a verb may take; in held-out text any, because its object is already a reserved one."""
        names = list(words.PLACES) if self.held_out else free_names(words.PLACES, verb.base)
        return [words.PLACES[name] for name in names]
