"""The sentence patterns of the phrasebook.

A pattern consists of frames. A frame fixes the verb and the tense and leaves slots (subject, time, object, place) that
are filled independently, so its sentences can be counted and numbered.

Chinese order, which every frame keeps: subject, time, marker (正在, 会, 想, 没), place, verb, 了, object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from headwise.text import phrasebook_words as words
from headwise.text.phrasebook_phrases import (
    FUTURE,
    GIVERS,
    HABIT,
    KNOWN_PEOPLE,
    NOTHING,
    PAST,
    PROGRESSIVE,
    RECEIVERS,
    SUBJECTS,
    WISH,
    Split,
    Tense,
    Thing,
    any_thing,
    bare,
    conjugate,
    counted,
    definite,
    free_names,
    how_many,
    plain_counted,
    plain_things,
    specific,
    things,
)
from headwise.text.phrasebook_words import THIRD, Person, Phrase, Verb


class Frame(NamedTuple):
    slots: tuple[Sequence[Any], ...]
    render: Callable[..., tuple[str, str]]  # takes one filling per slot, returns (English, Chinese)


def _marker(tense: Tense, places: Sequence[Phrase]) -> str:
    """正在 before a place loses its 在: 正在公园里, not 正在在公园里."""
    return "正" if tense is PROGRESSIVE and places is not NOTHING else tense.marker


def _statement(verb: Verb, tense: Tense, objects: list[Thing], places: Sequence[Phrase]) -> Frame:
    forms, marker, action = conjugate(tense.statement, verb), _marker(tense, places), verb.chinese + tense.ending

    def render(who: Person, time: Phrase, what: Thing, place: Phrase) -> tuple[str, str]:
        return (
            f"{who.english} {forms[who.agreement]} {what.english}{place.english}{time.english}.",
            f"{who.chinese}{time.chinese}{marker}{place.chinese}{action}{what.chinese}。",
        )

    return Frame((SUBJECTS, tense.times, objects, places), render)


def statements(split: Split) -> Iterator[Frame]:
    """My mother bought three red hats yesterday. 我妈妈昨天买了三顶红色的帽子。"""
    for verb in words.VERBS:
        for tense in (PAST, PROGRESSIVE, FUTURE, WISH):
            yield _statement(verb, tense, split.objects(verb, any_thing), NOTHING)


def statements_with_place(split: Split) -> Iterator[Frame]:
    """The doctor is reading a book in the park. 那位医生正在公园里读一本书。"""
    for verb in words.VERBS:
        for tense in (PAST, PROGRESSIVE, FUTURE, WISH):
            yield _statement(verb, tense, split.objects(verb, any_thing), split.places(verb))


def _habit_with_adverb(verb: Verb, objects: list[Thing], places: Sequence[Phrase]) -> Frame:
    forms = conjugate(HABIT.statement, verb)

    def render(who: Person, adverb: Phrase, what: Thing, place: Phrase) -> tuple[str, str]:
        return (
            f"{who.english} {adverb.english} {forms[who.agreement]} {what.english}{place.english}.",
            f"{who.chinese}{adverb.chinese}{place.chinese}{verb.chinese}{what.chinese}。",
        )

    return Frame((SUBJECTS, words.ADVERBS, objects, places), render)


def habits(split: Split) -> Iterator[Frame]:
    """She never drinks coffee at home. 她从不在家里喝咖啡。"""
    for verb in words.VERBS:
        objects = split.objects(verb, bare)
        for places in (NOTHING, split.places(verb)):
            yield _statement(verb, HABIT, objects, places)
            yield _habit_with_adverb(verb, objects, places)


def _denial(verb: Verb, tense: Tense, objects: list[Thing], places: Sequence[Phrase]) -> Frame:
    negation, (rest,) = tense.negation, conjugate([tense.rest], verb)
    times = NOTHING if tense is HABIT else tense.times

    def render(who: Person, time: Phrase, what: Thing, place: Phrase) -> tuple[str, str]:
        return (
            f"{who.english} {negation[who.agreement]} {rest} {what.english}{place.english}{time.english}.",
            f"{who.chinese}{time.chinese}{tense.negator}{place.chinese}{verb.chinese}{what.chinese}。",
        )

    return Frame((SUBJECTS, times, objects, places), render)


def negations(split: Split) -> Iterator[Frame]:
    """Tom didn't wash the car yesterday. 汤姆昨天没洗那辆汽车。"""
    for verb in words.VERBS:
        for tense in (PAST, PROGRESSIVE, FUTURE, WISH):
            yield _denial(verb, tense, split.objects(verb, definite), NOTHING)
        yield _denial(verb, HABIT, split.objects(verb, bare), split.places(verb))


def yes_no_questions(split: Split) -> Iterator[Frame]:
    """Did your father repair this chair last week? 你爸爸上个星期修理这把椅子了吗？"""
    for verb in words.VERBS:
        for tense in (PAST, PROGRESSIVE, FUTURE, WISH, HABIT):
            objects = split.objects(verb, bare if tense is HABIT else definite)
            yield _question(verb, tense, objects, "", tense.marker, f"{tense.ending}吗？")


def circumstance_questions(split: Split) -> Iterator[Frame]:
    """Where did Anna buy the watch last year? 安娜去年是在哪里买那块手表的？"""
    for verb in words.VERBS:
        objects = split.objects(verb, definite)
        yield _question(verb, PAST, objects, "where ", "是在哪里", "的？")
        yield _question(verb, FUTURE, objects, "where ", "会在哪里", "？")
        yield _question(verb, PAST, objects, "why ", "为什么", "？")
        yield _question(verb, WISH, objects, "why ", "为什么想", "？")
        yield _question(verb, PAST._replace(times=NOTHING), objects, "when ", "是什么时候", "的？")
        yield _question(verb, FUTURE._replace(times=NOTHING), objects, "when ", "什么时候会", "？")


def _question(verb: Verb, tense: Tense, objects: list[Thing], asking: str, marker: str, end: str) -> Frame:
    auxiliary, (rest,) = tense.question, conjugate([tense.rest], verb)

    def render(who: Person, time: Phrase, what: Thing) -> tuple[str, str]:
        return (
            f"{asking}{auxiliary[who.agreement]} {who.english} {rest} {what.english}{time.english}?",
            f"{who.chinese}{time.chinese}{marker}{verb.chinese}{what.chinese}{end}",
        )

    return Frame((SUBJECTS, tense.times, objects), render)


def who_questions(split: Split) -> Iterator[Frame]:
    """Who is feeding the black cat in the garden? 谁正在花园里喂那只黑色的猫？"""
    for verb in words.VERBS:
        for tense in (PAST, PROGRESSIVE, FUTURE, HABIT):
            for places in (NOTHING, split.places(verb)):
                objects = split.objects(verb, bare if tense is HABIT else definite)
                frame = _statement(verb, tense, objects, places)
                yield Frame(((Person("who", "谁", THIRD),), *frame.slots[1:]), _as_question(frame.render))


def _as_question(render: Callable[..., tuple[str, str]]) -> Callable[..., tuple[str, str]]:
    def ask(*fillings: Any) -> tuple[str, str]:
        english, chinese = render(*fillings)
        return english[:-1] + "?", chinese[:-1] + "？"

    return ask


def what_questions(split: Split) -> Iterator[Frame]:
    """What will they eat at the station tomorrow? 他们明天会在车站吃什么？"""
    for verb in words.VERBS:
        places = [words.PLACES[name] for name in split.companions(words.PLACES, verb.base)]
        for tense in (PAST, PROGRESSIVE, FUTURE, WISH):
            yield _what(verb, tense, places)


def _what(verb: Verb, tense: Tense, places: list[Phrase]) -> Frame:
    auxiliary, (rest,) = tense.question, conjugate([tense.rest], verb)
    marker, action = _marker(tense, places), verb.chinese + tense.ending

    def render(who: Person, time: Phrase, place: Phrase) -> tuple[str, str]:
        return (
            f"what {auxiliary[who.agreement]} {who.english} {rest}{place.english}{time.english}?",
            f"{who.chinese}{time.chinese}{marker}{place.chinese}{action}什么？",
        )

    return Frame((SUBJECTS, tense.times, places), render)


def gifts(split: Split) -> Iterator[Frame]:
    """Emma lent the nurse two umbrellas yesterday. 艾玛昨天借给了那位护士两把雨伞。"""
    for verb in words.GIVING_VERBS:
        for tense in (PAST, FUTURE, WISH):
            yield _gift(verb, tense, split.objects(verb, counted))


def _gift(verb: Verb, tense: Tense, objects: list[Thing]) -> Frame:
    forms, action = conjugate(tense.statement, verb), tense.marker + verb.chinese + tense.ending

    def render(who: Person, time: Phrase, receiver: Person, what: Thing) -> tuple[str, str]:
        return (
            f"{who.english} {forms[who.agreement]} {receiver.english} {what.english}{time.english}.",
            f"{who.chinese}{time.chinese}{action}{receiver.chinese}{what.chinese}。",
        )

    return Frame((GIVERS, tense.times, RECEIVERS, objects), render)


def people_who(split: Split) -> Iterator[Frame]:
    """The man who sold two cows will buy a horse tomorrow. 卖了两头牛的那个男人明天会买一匹马。"""
    for inner in words.VERBS:
        for outer in words.VERBS:
            if inner is outer:
                continue
            chosen = split.companions(inner.objects, inner.base)
            inner_objects = chosen if split.held_out else free_names(chosen, outer.base)
            # One "two cups of" per sentence is enough: these sentences are the longest.
            names = [name for name in outer.objects if words.NOUNS[name].container is None]
            outer_objects = things(plain_things, free_names(names, inner.base, outer.base))
            yield _person_who(inner, outer, things(plain_counted, inner_objects), outer_objects)


def _person_who(inner: Verb, outer: Verb, inner_objects: list[Thing], outer_objects: list[Thing]) -> Frame:
    inner_forms = [
        (conjugate(tense.statement, inner), tense.marker + inner.chinese + tense.ending)
        for tense in (PAST, PROGRESSIVE)
    ]
    outer_forms = [
        (conjugate(tense.statement, outer), time, tense.marker + outer.chinese + tense.ending)
        for tense in (PAST, FUTURE, WISH)
        for time in tense.times
    ]

    def render(who: Person, did: Any, what: Thing, does: Any, other: Thing) -> tuple[str, str]:
        (did_forms, did_chinese), (does_forms, time, does_chinese) = did, does
        number = who.agreement
        return (
            f"{who.english} who {did_forms[number]} {what.english} {does_forms[number]} {other.english}{time.english}.",
            f"{did_chinese}{what.chinese}的{who.chinese}{time.chinese}{does_chinese}{other.chinese}。",
        )

    return Frame((KNOWN_PEOPLE, inner_forms, inner_objects, outer_forms, outer_objects), render)


_PLACELESS = {noun.singular for noun in words.NOUNS.values() if noun.container} | {"email", "story", "poem"}


def things_that(split: Split) -> Iterator[Frame]:
    """The watch that Tom wants to sell is at the hotel. 汤姆想卖的那块手表在酒店。"""
    for verb in words.VERBS:
        if verb.base in ("eat", "drink"):  # what was eaten has no place
            continue
        names = [name for name in split.companions(verb.objects, verb.base) if name not in _PLACELESS]
        for tense in (PAST, PROGRESSIVE, WISH):
            yield _thing_that(verb, tense, things(specific, names), split.places(verb))


def _thing_that(verb: Verb, tense: Tense, things: list[Thing], places: list[Phrase]) -> Frame:
    forms, times = conjugate(tense.statement, verb), NOTHING if tense is PROGRESSIVE else tense.times

    def render(what: Thing, who: Person, time: Phrase, place: Phrase) -> tuple[str, str]:
        be = "are" if what.plural else "is"
        return (
            f"{what.english} that {who.english} {forms[who.agreement]}{time.english} {be}{place.english}.",
            f"{who.chinese}{time.chinese}{tense.marker}{verb.chinese}的{what.chinese}{place.chinese}。",
        )

    return Frame((things, SUBJECTS, times, places), render)


_NOW, _THEN = ("is", "are"), ("was", "were")


def _at_landmark(
    landmark: str, found: list[Thing], english: str, chinese: str, be: tuple[str, str] = _NOW, times: Any = NOTHING
) -> Frame:
    chinese_landmark = words.LANDMARKS[landmark]

    def render(what: Thing, side: Phrase, time: Phrase) -> tuple[str, str]:
        where = f"{side.english} the {landmark}{time.english}"
        return (
            english.format(be=be[what.plural], what=what.english, where=where),
            chinese.format(time=time.chinese, what=what.chinese, where=chinese_landmark + side.chinese),
        )

    return Frame((found, words.SIDES, times), render)


def existence(split: Split) -> Iterator[Frame]:
    """There are three cats under the sofa. 沙发下面有三只猫。"""
    for landmark in words.LANDMARKS:
        names = split.companions(words.SMALL_THINGS, landmark)
        some, kinds, amounts = things(counted, names), things(bare, names), things(how_many, names)
        english, chinese = "there {be} {what} {where}.", "{time}{where}有{what}。"
        yield _at_landmark(landmark, some, english, chinese)
        yield _at_landmark(landmark, some, english, chinese, _THEN, words.PAST_TIMES)
        yield _at_landmark(landmark, kinds, "there {be} no {what} {where}.", "{where}没有{what}。")
        yield _at_landmark(landmark, kinds, "{be} there any {what} {where}?", "{where}有{what}吗？")
        yield _at_landmark(landmark, amounts, "how many {what} {be} there {where}?", "{where}有{what}？")


def positions(split: Split) -> Iterator[Frame]:
    """Is my umbrella behind the piano? 我的雨伞在钢琴后面吗？"""
    for landmark in words.LANDMARKS:
        found = things(definite, split.companions(words.SMALL_THINGS, landmark))
        english, chinese = "{what} {be} {where}.", "{what}{time}在{where}。"
        yield _at_landmark(landmark, found, english, chinese)
        yield _at_landmark(landmark, found, english, chinese, _THEN, words.PAST_TIMES)
        yield _at_landmark(landmark, found, "{what} {be} not {where}.", "{what}不在{where}。")
        yield _at_landmark(landmark, found, "{be} {what} {where}?", "{what}在{where}吗？")


PATTERNS: tuple[Callable[[Split], Iterator[Frame]], ...] = (
    statements,
    yes_no_questions,
    people_who,
    habits,
    who_questions,
    existence,
    negations,
    what_questions,
    things_that,
    statements_with_place,
    circumstance_questions,
    gifts,
    positions,
)


def frames(pattern: Callable[[Split], Iterator[Frame]], split: Split) -> list[Frame]:
    """Lists the frames of a pattern, each once with the few short subjects (I, Tom) and once with the many others.

    Frames take turns, so this keeps pronouns common among so many people. Frames without sentences are left out.
    """
    divided = []
    for frame in pattern(split):
        groups = (GIVERS, RECEIVERS) if any(slot is SUBJECTS for slot in frame.slots) else (SUBJECTS,)
        for group in groups:
            slots = tuple(group if slot is SUBJECTS else slot for slot in frame.slots)
            if all(slots):
                divided.append(Frame(slots, frame.render))
    return divided
