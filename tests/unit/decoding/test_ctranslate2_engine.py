from __future__ import annotations

from pathlib import Path

import pytest

from headwise.bundle.directory import open_bundle
from headwise.decoding.ctranslate2_engine import CTranslate2Engine
from headwise.decoding.options import SearchOptions
from headwise.interop.ctranslate2.kept import kept_export
from headwise.text.tokenizer import TokenizerPair

SOURCES = [[5] * length for length in (3, 7, 3, 4, 7, 3, 3, 0)]


@pytest.fixture
def engine(word_model: Path) -> CTranslate2Engine:
    bundle, tokenizers = open_bundle(word_model), TokenizerPair.load(word_model)
    return CTranslate2Engine(kept_export(bundle, tokenizers, "int8"), tokenizers, longest=100)


@pytest.mark.parametrize(("most", "batches"), [(64, 4), (3, 5), (1, 8)])
def test_a_batch_has_sentences_of_one_length_so_that_nothing_is_padded(
    engine: CTranslate2Engine, most: int, batches: int
) -> None:
    found = list(engine._batches(SOURCES, SearchOptions(beam=5, batch_sentences=most)))
    assert sorted(place for places in found for place in places) == list(range(len(SOURCES)))
    assert all(len({len(SOURCES[place]) for place in places}) == 1 for places in found)
    assert [len(SOURCES[places[0]]) for places in found] == sorted((len(SOURCES[p[0]]) for p in found), reverse=True)
    assert len(found) == batches
    assert max(map(len, found)) <= most


def test_no_output_is_longer_than_its_own_limit_allows(engine: CTranslate2Engine) -> None:
    found = engine.search(SOURCES, SearchOptions(beam=2, max_extra=1))
    for source, (best, *_) in zip(SOURCES, found, strict=True):
        assert len(best.tokens) <= len(source) + 1
