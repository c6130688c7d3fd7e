"""The generated corpus of the demo: correct, distinct, deterministic, and held out by combination."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from headwise.errors import UsageError, WorkFailed
from headwise.text import phrasebook_words as words
from headwise.text.phrasebook import Phrasebook, PhrasePair, _permutation, demo_sentences, write_corpus
from headwise.text.phrasebook_patterns import PATTERNS
from headwise.text.phrasebook_phrases import reserved_combinations

VERB_FORMS = {form: verb.base for verb in (*words.VERBS, *words.GIVING_VERBS) for form in verb[:4]}
NOUN_FORMS = {form: noun.singular for noun in words.NOUNS.values() for form in noun[:2]}


def english_words(sentence: str) -> list[str]:
    return re.findall(r"[a-z']+", sentence.lower())


def reserved_in(sentence: str) -> set[tuple[str, str]]:
    """Finds the reserved combinations whose two words both occur in the sentence, from its text alone."""
    found = english_words(sentence)
    heads = {VERB_FORMS[word] for word in found if word in VERB_FORMS} | (words.LANDMARKS.keys() & set(found))
    companions = {NOUN_FORMS[word] for word in found if word in NOUN_FORMS}
    companions |= {name for name, place in words.PLACES.items() if re.search(rf"{place.english}\b", sentence)}
    return {(head, name) for head in heads for name in companions} & reserved_combinations()


@pytest.fixture(scope="module")
def book() -> Phrasebook:
    return Phrasebook(seed=1)


@pytest.fixture(scope="module")
def training(book: Phrasebook) -> list[PhrasePair]:
    return list(book.pairs(60_000))


@pytest.fixture(scope="module")
def held_out(book: Phrasebook) -> list[PhrasePair]:
    return list(book.pairs(20_000, held_out=True))


@pytest.mark.slow
def test_a_million_pairs_are_distinct_so_no_english_sentence_has_two_translations(book: Phrasebook) -> None:
    # Hashes take less memory than strings; among a million a collision has odds of one in tens of millions.
    assert len({hash(pair.english) for pair in book.pairs(1_000_000)}) == 1_000_000


def test_an_english_sentence_has_one_translation_across_seeds_and_splits(held_out: list[PhrasePair]) -> None:
    known: dict[str, str] = {}
    repeated = 0
    for seed in range(3):
        for pair in (*Phrasebook(seed).pairs(20_000), *Phrasebook(seed).pairs(20_000, held_out=True), *held_out):
            repeated += pair.english in known
            assert known.setdefault(pair.english, pair.chinese) == pair.chinese
    assert repeated > 20_000


def test_the_space_is_far_larger_than_any_corpus_taken_from_it(book: Phrasebook) -> None:
    assert book.size() > 10**8
    assert book.size(held_out=True) > 10**8


def test_a_short_stream_is_the_beginning_of_a_long_one_and_the_seed_decides_the_order(book: Phrasebook) -> None:
    assert list(book.pairs(10)) == list(book.pairs(1000))[:10] == list(Phrasebook(seed=1).pairs(10))
    assert list(book.pairs(10)) != list(Phrasebook(seed=2).pairs(10))


def test_no_training_sentence_contains_a_reserved_combination(training: list[PhrasePair]) -> None:
    assert [pair.english for pair in training if reserved_in(pair.english)] == []


def test_every_held_out_sentence_contains_a_reserved_combination(held_out: list[PhrasePair]) -> None:
    assert [pair.english for pair in held_out if not reserved_in(pair.english)] == []


def test_held_out_sentences_use_all_of_the_reserved_combinations(held_out: list[PhrasePair]) -> None:
    used = set().union(*(reserved_in(pair.english) for pair in held_out))
    assert used == reserved_combinations()


def test_every_verb_and_landmark_has_reserved_companions_and_every_noun_keeps_most_of_its_verbs() -> None:
    reserved = reserved_combinations()
    assert {head for head, _ in reserved} == set(VERB_FORMS.values()) | words.LANDMARKS.keys()
    verbs = {verb.base: verb for verb in (*words.VERBS, *words.GIVING_VERBS)}
    for noun in words.NOUNS:
        taking = [base for base, verb in verbs.items() if noun in verb.objects]
        assert sum((base, noun) not in reserved for base in taking) >= 2, noun


def test_every_word_and_character_of_held_out_text_is_common_in_training(
    training: list[PhrasePair], held_out: list[PhrasePair]
) -> None:
    seen = Counter(word for pair in training for word in pair.english.rstrip(".?").split())
    rare = {word for pair in held_out for word in pair.english.rstrip(".?").split() if seen[word] < 15}
    assert rare == set()
    characters = Counter(character for pair in training for character in pair.chinese)
    assert {character for pair in held_out for character in pair.chinese if characters[character] < 100} == set()


def test_the_vocabulary_is_small_and_sentences_are_short(training: list[PhrasePair]) -> None:
    lengths = [len(english_words(pair.english)) for pair in training]
    assert 250 <= len({word for pair in training for word in english_words(pair.english)}) <= 400
    assert min(lengths) >= 4
    assert max(lengths) <= 16
    assert sum(lengths) / len(lengths) < 10


def test_a_and_an_agree_with_the_word_that_follows(training: list[PhrasePair]) -> None:
    followers = [match.groups() for pair in training for match in re.finditer(r"\b([Aa]n?) ([a-z])", pair.english)]
    assert followers
    assert all((article.lower() == "an") == (letter in "aeiou") for article, letter in followers)


def test_numbers_stand_before_plurals_and_a_measure_word(training: list[PhrasePair]) -> None:
    measures = "".join(
        sorted({noun.measure for noun in words.NOUNS.values()} | {noun.measure for noun in words.PEOPLE})
    )
    numbers = "|".join(number.english for number in words.NUMBERS)
    names = {noun.plural for noun in words.NOUNS.values() if noun.container is None} | {"cups", "bottles", "bowls"}
    names |= {adjective.english for adjectives in words.ADJECTIVES.values() for adjective in adjectives} | {"days"}
    for pair in training:
        assert set(re.findall(rf"\b(?:{numbers}) ([a-z]+)", pair.english)) <= names, pair
        assert not re.search(rf"二|两[^{measures}]|[三四五六七八九十](?![{measures}]|天前|明治)", pair.chinese), pair


def test_the_verb_agrees_with_its_subject(training: list[PhrasePair]) -> None:
    wrong = (
        r"^(?:I|You|We|They) (?:is|was|wants|doesn't|often \w+s|usually \w+s)\b",
        r"^(?:He|She|Tom|Anna|My \w+) (?:am|are|were|want|don't)\b",
        r"\b(?:teachers|men|women|children|the \w+s) (?:is|was|wants|doesn't)\b",
        r"\bthese \w+ \w+ (?:is|was)\b",
    )
    assert [pair.english for pair in training if any(re.search(fault, pair.english) for fault in wrong)] == []


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (r"^\w+ bought .* yesterday\.$", r"昨天.*买了"),
        (r" is .* in the park now\.$", r"现在正在公园里"),
        (r"^Did .* yesterday\?$", r"昨天.*了吗？$"),
        (r"^\w+ won't ", r"不会"),
        (r"^\w+ didn't ", r"没"),
        (r"^Where did ", r"是在哪里.*的？$"),
        (r"^Who ", r"^谁.*？$"),
        (r"^What ", r"什么？$"),
        (r"^The (?:men|women) who ", r"的那些[男女]人"),
        (r"^The .* that Anna .* is ", r"^安娜.*的那"),
        (r"^There (?:is|are) (?!no)", r"有"),
        (r" a cup of ", r"一杯"),
    ],
)
def test_each_construction_has_its_chinese_form(training: list[PhrasePair], english: str, chinese: str) -> None:
    matching = [pair for pair in training if re.search(english, pair.english)]
    assert matching
    assert [pair for pair in matching if not re.search(chinese, pair.chinese)] == []


def test_patterns_take_turns(book: Phrasebook) -> None:
    first = [pair.english for pair in book.pairs(len(PATTERNS))]
    assert any(" who " in sentence for sentence in first)
    assert any(" that " in sentence for sentence in first)
    assert any(sentence.startswith("What") for sentence in first)
    assert sum(sentence.endswith("?") for sentence in first) >= 4


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 65, 1000, 4097])
def test_a_permutation_gives_every_number_once_in_another_order(size: int) -> None:
    order = list(_permutation(size, key=5))
    assert sorted(order) == list(range(size))
    assert size < 64 or order != sorted(order)


def test_a_permutation_of_a_huge_space_starts_at_once() -> None:
    assert len(set(islice(_permutation(10**12, key=5), 1000))) == 1000


def test_asking_for_more_pairs_than_there_are_is_one_clear_error(book: Phrasebook) -> None:
    with pytest.raises(UsageError, match=r"cannot be taken") as problem:
        book.pairs(book.size() + 1)
    assert "\n" not in str(problem.value)
    with pytest.raises(UsageError):
        book.pairs(-1)


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").split("\n")[:-1]


def test_the_corpus_is_six_aligned_files_whose_parts_share_no_sentence(tmp_path: Path) -> None:
    paths = write_corpus(tmp_path / "new" / "corpus", train=500, held_out=60, seed=3)
    assert sorted(paths) == ["test.en", "test.zh", "train.en", "train.zh", "val.en", "val.zh"]
    assert sorted(path.name for path in (tmp_path / "new" / "corpus").iterdir()) == sorted(paths)
    parts = {name: list(zip(lines(paths[f"{name}.en"]), lines(paths[f"{name}.zh"]), strict=True)) for name in
             ("train", "val", "test")}  # fmt: skip
    assert [len(part) for part in parts.values()] == [500, 60, 60]
    assert parts["train"] == [tuple(pair) for pair in Phrasebook(3).pairs(500)]
    assert parts["val"] + parts["test"] == [tuple(pair) for pair in Phrasebook(3).pairs(120, held_out=True)]
    assert len({sentence for part in parts.values() for sentence, _ in part}) == 620


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("taken")
    with pytest.raises(WorkFailed, match="cannot write the corpus"):
        write_corpus(tmp_path / "file" / "corpus", train=1, held_out=1)


def test_a_failed_part_leaves_no_half_written_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(self: Phrasebook, held_out: bool) -> Iterator[PhrasePair]:
        yield PhrasePair("One.", "一。")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Phrasebook, "_stream", breaks)
    with pytest.raises(WorkFailed, match="No space left"):
        write_corpus(tmp_path, train=5, held_out=5)
    assert list(tmp_path.iterdir()) == []


def test_demo_sentences_are_held_out_short_and_varied() -> None:
    sentences = demo_sentences(10)
    assert len(set(sentences)) == 10
    assert all(reserved_in(sentence) and len(sentence.split()) <= 13 for sentence in sentences)
    assert len({sentence.split()[0] for sentence in sentences}) >= 5
    assert any(" who " in sentence for sentence in sentences)
    assert demo_sentences(4) == sentences[:4]
