"""`headwise import`, and an imported model in the other commands."""

from __future__ import annotations

from pathlib import Path

from fixtures_published import publish_gpt2
from verbs import run


def test_a_published_model_is_imported_and_used(tmp_path: Path) -> None:
    publish_gpt2(tmp_path / "hub")
    done = run("import", tmp_path / "hub", tmp_path / "ours")
    assert (done.code, done.out) == (0, "")
    assert "family lm, task generate, licence not stated" in done.err
    written = run("generate", "--model", tmp_path / "ours", "the quick", "--max-tokens", 5, "--temperature", 0)
    assert written.code == 0
    (tmp_path / "text").write_text("the quick brown fox\nagain\n")
    assert "perplexity" in run("evaluate", "--model", tmp_path / "ours", "--text", tmp_path / "text").out
    assert "lm" in run("info", tmp_path / "ours").out
    fast = run("export", "--model", tmp_path / "ours", "--precision", "float32", tmp_path / "fast")
    assert fast.code == 0
    back = run("export", "--model", tmp_path / "ours", "--to", "huggingface", tmp_path / "back")
    assert back.out == f"wrote {tmp_path / 'back'} (huggingface, float32)\n"


def test_a_pickle_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "pytorch_model.bin").write_bytes(b"anything")
    done = run("import", tmp_path, tmp_path / "out")
    assert done.code == 2
    assert "is a pickle, which can run code, so it is not opened; convert it" in done.err
    assert not (tmp_path / "out").exists()
