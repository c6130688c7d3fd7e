from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.workflows.embed import check_output, embed_in_chunks, open_embedder, write_vectors


def test_chunks_are_the_whole(embedder_model: Path) -> None:
    embedder = open_embedder(embedder_model, "torch")
    texts = ["dog cat", "red"] * 600
    parts = list(embed_in_chunks(embedder, texts))
    assert [len(part) for part in parts] == [1024, 176]
    assert np.allclose(np.concatenate(parts)[:2], embedder.embed(texts[:2]), atol=1e-5)


def test_a_file_is_written_whole_in_the_format_of_its_name(tmp_path: Path) -> None:
    vectors = np.array([[0.6, 0.8]], dtype=np.float32)
    write_vectors(str(tmp_path / "v.npy"), ["a"], vectors)
    assert np.array_equal(np.load(tmp_path / "v.npy", allow_pickle=False), vectors)
    with pytest.raises(UsageError, match="must end with"):
        check_output("v.csv")
