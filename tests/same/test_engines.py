"""Both engines give the same translations; a user may switch between them without noticing more than the speed."""

from __future__ import annotations

import math
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures_models import english_sentences, german

from headwise.bundle.directory import open_bundle
from headwise.decoding.hypothesis import Scores
from headwise.decoding.options import Sampling, SearchOptions
from headwise.decoding.translator import Translator
from headwise.errors import DataError, UsageError
from headwise.evaluation.metrics import bleu
from headwise.interop.ctranslate2.kept import kept_export
from headwise.tasks.alignments import alignments
from headwise.text.tokenizer import TokenizerPair
from headwise.workflows.translate import open_translator

SENTENCES = english_sentences(300, seed=90_000, longest=14)  # longer than those it learned from: it makes mistakes too


@pytest.fixture(scope="module")
def model(word_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(word_model, tmp_path_factory.mktemp("engines") / "model"))


@pytest.fixture(scope="module")
def with_torch(model: Path) -> Translator:
    return open_translator(model, "torch")


@pytest.fixture(scope="module")
def with_float32(model: Path) -> Translator:
    return open_translator(model, "ctranslate2", precision="float32")


@pytest.mark.parametrize("beam", [1, 4])
def test_both_engines_give_the_same_text_and_score(with_torch: Translator, with_float32: Translator, beam: int) -> None:
    ours, theirs = (t.translate(SENTENCES, beam=beam) for t in (with_torch, with_float32))
    same = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.text == b.text]
    assert len(same) >= 0.99 * len(SENTENCES)
    for a, b in same:
        assert b.score == pytest.approx(a.score, abs=1e-3)
        assert b.stopped == a.stopped
        assert b.confidence == pytest.approx(a.confidence, abs=1e-3)
        assert b.log_probs == pytest.approx(a.log_probs, abs=1e-3)
    assert any(a.text != german(s) for a, s in zip(ours, SENTENCES, strict=True))  # not an empty comparison


def test_both_engines_have_nearly_the_same_alternatives(with_torch: Translator, with_float32: Translator) -> None:
    ours, theirs = (t.translate(SENTENCES[:100], beam=5, n_best=3) for t in (with_torch, with_float32))
    assert sum(a.alternatives[0].text == b.alternatives[0].text for a, b in zip(ours, theirs, strict=True)) >= 90
    for answer in theirs:
        texts = [answer.text, *(other.text for other in answer.alternatives)]
        assert len(texts) == len(set(texts)) == 3
        assert answer.score >= answer.alternatives[0].score >= answer.alternatives[1].score


@pytest.mark.parametrize("beam", [1, 4])
def test_a_text_does_not_depend_on_the_scores_that_are_returned(
    model: Path, with_float32: Translator, beam: int
) -> None:
    with_all = with_float32.translate(SENTENCES, beam=beam)
    asked: tuple[Scores, ...] = ("sentences", "none")
    for scores in asked:
        translator = open_translator(model, "ctranslate2", precision="float32", scores=scores)
        found = translator.translate(SENTENCES, beam=beam)
        assert [one.text for one in found] == [one.text for one in with_all]
        missing = [math.isnan(one.score) for one in found]
        assert all(math.isnan(one.confidence) == (scores == "none") for one in found)
        # Greedy search has a score only where one was needed on the way, and then the right one.
        assert sum(missing) >= 0.9 * len(found) if (scores, beam) == ("none", 1) else not any(missing)
        for one, known in zip(found, with_all, strict=True):
            # Without a second reading, CTranslate2 renormalises over the tokens that may come: all but unknown ones.
            assert math.isnan(one.score) or one.score == pytest.approx(known.score, rel=0.05, abs=0.01)
            assert math.isnan(one.confidence) or one.confidence == pytest.approx(known.confidence, abs=0.02)


class Asked:
    """CTranslate2, and what it was asked for: the sentences of each call, and how they are to be searched."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.calls = inner, []  # type: ignore[var-annotated]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def translate_batch(self, texts: list[list[str]], **settings: Any) -> Any:
        self.calls.append((texts, settings))
        return self.inner.translate_batch(texts, **settings)


def test_batches_are_of_like_length_each_with_its_own_longest_output(model: Path) -> None:
    engine: Any = open_translator(model, "ctranslate2", scores="sentences").engine
    asked = _watched(engine)
    sources = [[5] * length for length in (3, 1, 9, 2, 8, 1)]
    engine.search(sources, SearchOptions(beam=2, batch_sentences=2, max_extra=7))
    lengths = sorted(map(len, sources), reverse=True)
    assert sum(len(texts) for texts, _ in asked.calls) == len(sources)
    start = 0
    for texts, settings in asked.calls:
        assert len(texts) <= 2
        assert max(map(len, texts)) == lengths[start] + 1  # the end of sentence
        assert settings["max_decoding_length"] == lengths[start] + 7
        start += len(texts)


def _watched(engine: Any) -> Asked:
    engine._translator = asked = Asked(engine._translator)
    return asked


def test_int8_translates_as_well_as_float32(model: Path, with_float32: Translator) -> None:
    known = english_sentences(300, seed=91_000)
    reference = [german(sentence) for sentence in known]
    scores = [
        bleu([answer.text for answer in translator.translate(known)], reference).value
        for translator in (with_float32, open_translator(model, "ctranslate2", precision="int8"))
    ]
    assert scores[0] > 95
    assert scores[1] == pytest.approx(scores[0], abs=1.0)


def test_order_batch_size_and_empty_lines_do_not_change_a_translation(with_float32: Translator) -> None:
    texts = [*SENTENCES[:40], "", "  "]
    together = [answer.text for answer in with_float32.translate(texts, beam=2)]
    alone = [with_float32.translate([text], beam=2)[0].text for text in texts]
    backwards = [answer.text for answer in with_float32.translate(texts[::-1], beam=2, batch_sentences=7)][::-1]
    assert together == alone == backwards
    assert together[-2:] == ["", ""]


def test_single_sentences_at_the_same_time_become_what_they_are_one_by_one(with_float32: Translator) -> None:
    expected = [with_float32.translate([text])[0].text for text in SENTENCES[:30]]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: with_float32.translate([text])[0].text, SENTENCES[:30]))
    assert found == expected


def test_both_engines_score_given_text_alike(with_torch: Translator, with_float32: Translator) -> None:
    tokenizers = with_torch.tokenizers
    sources = tokenizers.source.encode_batch(SENTENCES[:50])
    targets = tokenizers.target.encode_batch([german(sentence) for sentence in SENTENCES[:50]])
    ours, theirs = (t.engine.score(sources, targets) for t in (with_torch, with_float32))
    for a, b in zip(ours, theirs, strict=True):
        assert b == pytest.approx(a, abs=1e-3)


def test_both_engines_align_words_alike_and_word_by_word(with_torch: Translator, with_float32: Translator) -> None:
    known = english_sentences(40, seed=92_000)
    lines = [alignments(t, known, t.translate(known, beam=1)) for t in (with_torch, with_float32)]
    assert lines[0] == lines[1]
    shares = []
    for sentence, line in zip(known, lines[0], strict=True):
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert [target for _, target in sorted(links, key=lambda link: link[1])] == list(range(len(sentence.split())))
        shares.append(np.mean([source == target for source, target in links]))
    assert np.mean(shares) > 0.9  # the task is word by word, so attention should be on the diagonal


def test_more_tokens_than_the_export_has_positions_for_are_refused(with_float32: Translator) -> None:
    engine: Any = with_float32.engine
    fits, too_long = [5] * (engine.longest - 1), [5] * engine.longest
    assert len(engine.score([fits], [fits])[0]) == engine.longest
    for sources, targets in (([too_long], [fits]), ([fits], [too_long])):
        with pytest.raises(DataError, match=f"longer than the model's limit of {engine.longest} tokens; split it"):
            engine.score(sources, targets)
    with pytest.raises(DataError, match="longer than the model's limit"):
        engine.search([fits, too_long], with_float32.options(beam=1))


def test_the_fast_engine_says_what_it_lacks_and_auto_takes_the_other(model: Path, with_float32: Translator) -> None:
    with pytest.raises(UsageError, match="sampling"):
        with_float32.translate(["one"], sample=Sampling(seed=1))
    with pytest.raises(UsageError, match="prefix"):
        with_float32.translate(["one two"], prefix="eins")
    replaced = with_float32.translate(["one two"], glossary={"two": "drei"})[0].text
    assert replaced == "eins drei", "a term takes the place of what it translates, without a search of its own"
    auto = open_translator(model, "auto")
    assert auto.engine.name == "ctranslate2"
    assert auto.translate(["one two"])[0].text == "eins zwei"
    assert "drei" in auto.translate(["one two"], glossary={"two": "drei"})[0].text.split()
    assert auto.translate(["one two"], sample=Sampling(seed=1, top_k=1))[0].text == "eins zwei"
    with pytest.raises(UsageError, match="unknown engine"):
        open_translator(model, "fastest")


def test_an_export_is_made_once_kept_with_the_model_and_never_stale(word_model: Path, tmp_path: Path) -> None:
    directory = Path(shutil.copytree(word_model, tmp_path / "model"))
    bundle, tokenizers = open_bundle(directory), TokenizerPair.load(directory)
    first = kept_export(bundle, tokenizers, "int8")
    assert first == directory / "ctranslate2" / "int8"
    made = (first / "model.bin").stat().st_mtime_ns
    assert kept_export(open_bundle(directory), tokenizers, "int8") == first
    assert (first / "model.bin").stat().st_mtime_ns == made
    (first / "model.bin").write_bytes(b"damaged")
    assert kept_export(bundle, tokenizers, "int8") == first
    assert (first / "model.bin").stat().st_size > 1000


@pytest.mark.skipif(os.name != "posix", reason="permissions of directories")
def test_where_the_model_directory_cannot_be_written_the_users_cache_is(
    word_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = Path(shutil.copytree(word_model, tmp_path / "model", ignore=shutil.ignore_patterns("ctranslate2")))
    (directory / "ctranslate2").write_text("a file is in the way, which even an administrator cannot write into")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = kept_export(open_bundle(directory), TokenizerPair.load(directory), "int8")
    assert tmp_path / "cache" in place.parents
    assert open_translator(directory).translate(["one two"])[0].text == "eins zwei"
