"""`headwise import`, and an imported model in the other commands."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures_published import publish_gpt2, publish_marian
from safetensors.torch import load_file, save_file
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
    assert len(run("score", "--model", tmp_path / "ours", "--text", tmp_path / "text").lines) == 2
    assert run("look", "--model", tmp_path / "ours", "the quick", "--output", tmp_path / "look.html").code == 0
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        """
        [data]
        text = "text"
        [data.validation]
        text = "text"
        [model]
        family = "lm"
        from = "ours"
        [training]
        steps = 2
        batch_tokens = 64
        """
    )
    assert run("train", recipe, "--output", tmp_path / "run").code == 0
    tuned = tmp_path / "run/model"
    assert (tuned / "tokenizer.json").read_bytes() == (tmp_path / "ours/tokenizer.json").read_bytes()
    assert (tuned / "model.safetensors").read_bytes() != (tmp_path / "ours/model.safetensors").read_bytes()
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


def config(**values: object) -> Callable[[Path], object]:
    def change(hub: Path) -> None:
        old = json.loads((hub / "config.json").read_text())
        (hub / "config.json").write_text(json.dumps({**old, **values}))

    return change


def weights(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def changed(hub: Path) -> None:
        found = load_file(hub / "model.safetensors")
        change(found)
        save_file(found, hub / "model.safetensors")

    return changed


def cut(hub: Path) -> None:
    (hub / "model.safetensors").write_bytes((hub / "model.safetensors").read_bytes()[:-100])


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    publish_gpt2(folder / "hub")
    return folder / "hub"


NORM = "transformer.ln_f.bias"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pickle": (lambda hub: (hub / "model.safetensors").rename(hub / "model.pt"), "is a pickle"),
    "unknown architecture": (config(model_type="mamba"), "the architecture 'mamba' is unknown"),
    "a missing key": (weights(lambda found: found.pop(NORM)), f"lacks {NORM}"),
    "an extra key": (weights(lambda found: found.update(more=found[NORM] + 1)), "has the unknown weights more"),
    "another shape": (weights(lambda found: found.update({NORM: found[NORM][:-1].clone()})), "disagrees with"),
    "terabytes": (config(n_embd=10**12, n_head=1), "disagrees with config.json|impossible architecture"),
    "a cut file": (cut, "is cut off or damaged"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path: Path, published: Path, name: str) -> None:
    damage, words = DAMAGES[name]
    shutil.copytree(published, tmp_path / "hub")
    damage(tmp_path / "hub")
    done = run("import", tmp_path / "hub", tmp_path / "out")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert re.search(words, done.err)
    assert [path.name for path in tmp_path.iterdir()] == ["hub"]


def test_a_hub_that_cannot_be_reached_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = run("import", "somebody/model", tmp_path / "out")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "could not fetch somebody/model from the Hub" in done.err
    assert not list(tmp_path.iterdir())


def test_an_imported_translator_does_all_that_one_of_our_own_does(tmp_path: Path) -> None:
    publish_marian(tmp_path / "hub")
    ours = tmp_path / "ours"
    assert run("import", tmp_path / "hub", ours).code == 0
    choose, words = random.Random(1), ("the lazy", "dog", "sleeps", "and then", "12 birds", "sing", "again")
    texts = [" ".join(choose.sample(words, choose.randint(2, 5))) for _ in range(60)]
    lines, source, target = texts[-4:], tmp_path / "text.en", tmp_path / "text.fr"
    for name, part in (("text", texts[:50]), ("held-out", texts[50:])):
        (tmp_path / f"{name}.en").write_text("\n".join(part) + "\n")
        (tmp_path / f"{name}.fr").write_text("\n".join(text.upper() for text in part) + "\n")
    assert len(run("translate", "--model", ours, "--beam", 2, *lines).lines) == 4
    assert len(run("score", "--model", ours, "--source", source, "--target", target).lines) == 50
    assert "BLEU" in run("evaluate", "--model", ours, "--source", source, "--reference", target).out
    assert run("look", "--model", ours, "the lazy dog", "--output", tmp_path / "look.html").code == 0
    assert "attention" in (tmp_path / "look.html").read_text(encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        """
        [data]
        source = "text.en"
        target = "text.fr"
        languages = ["en", "fr"]
        [data.validation]
        source = "held-out.en"
        target = "held-out.fr"
        [model]
        from = "ours"
        [training]
        steps = 6
        batch_tokens = 200
        validate_every = 3
        learning_rate = 1e-3
        schedule = "constant"
        warmup = 0
        """
    )
    tuned = run("train", recipe, "--output", tmp_path / "run")
    assert tuned.code == 0, tuned.err
    model = tmp_path / "run/model"
    for name in ("source.tokenizer.json", "target.tokenizer.json"):  # fine-tuned with its own tokenizer
        assert (model / name).read_bytes() == (ours / name).read_bytes()
    assert (model / "model.safetensors").read_bytes() != (ours / "model.safetensors").read_bytes()
    assert len(run("translate", "--model", model, *lines).lines) == 4
    for to in ("ctranslate2", "huggingface"):
        assert run("export", "--model", model, "--to", to, tmp_path / to).code == 0
    assert run("import", tmp_path / "huggingface", tmp_path / "again").code == 0
    assert (tmp_path / "again/model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()
