from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures_published import publish_gpt2, publish_marian
from safetensors.torch import load_file, save_file

import headwise
from headwise.bundle.directory import open_bundle, write_config
from headwise.errors import ModelError, UsageError
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model


def test_the_card_says_where_a_model_came_from_and_what_it_answers(tmp_path: Path) -> None:
    publish_gpt2(tmp_path / "hub")
    (tmp_path / "hub" / "README.md").write_text("---\nlicense: mit\n---\n")
    made = import_model(tmp_path / "hub", tmp_path / "ours")
    card = open_bundle(made.path).card
    assert (made.licence, made.family, made.task) == ("mit", "lm", "generate")
    assert (card["origin"]["source"], card["origin"]["licence"], card["origin"]["model_type"]) == ("hub", "mit", "gpt2")
    assert len(card["golden"]) == 4


def test_an_answer_that_is_not_the_promised_one_is_noticed_and_nothing_stays(tmp_path: Path) -> None:
    publish_gpt2(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    config["headwise_golden"] = [number - 1 for number in config["headwise_golden"]]
    (tmp_path / "back" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="take another copy"):
        import_model(tmp_path / "back", tmp_path / "again")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "hub", "ours"]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_an_import_that_answers_otherwise_is_refused_when_it_is_loaded(tmp_path: Path, engine: str) -> None:
    """All files have their hashes, so nothing but the answer tells that these are other weights."""
    publish_gpt2(tmp_path / "hub")
    ours = import_model(tmp_path / "hub", tmp_path / "ours").path
    headwise.load(ours, engine=engine)
    weights = load_file(ours / "model.safetensors")
    save_file({**weights, "embedding.weight": weights["embedding.weight"].flip(0)}, ours / "model.safetensors")
    write_config(ours, open_bundle(ours, verify=False))
    with pytest.raises(ModelError, match=r"answers .* to a fixed input, but when it was published it answered"):
        headwise.load(ours, engine=engine)


def test_positions_without_end_are_refused(tmp_path: Path) -> None:
    """No tensor has as many rows as a MarianMT has positions, so no shape disagrees."""
    publish_marian(tmp_path / "hub")
    config = json.loads((tmp_path / "hub/config.json").read_text())
    (tmp_path / "hub/config.json").write_text(json.dumps({**config, "max_position_embeddings": 10**12}))
    with pytest.raises(ModelError, match="which declares max_length = 1000000000000"):
        import_model(tmp_path / "hub", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_nothing_is_overwritten_and_a_failed_import_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    with pytest.raises(UsageError, match="is already there"):
        import_model(tmp_path / "hub", tmp_path / "mine")
    publish_gpt2(tmp_path / "hub")
    (tmp_path / "hub" / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        import_model(tmp_path / "hub", tmp_path / "ours")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hub", "mine"]


MEASURED = """
import re, sys
from pathlib import Path
from headwise.workflows.import_model import import_model
import_model(sys.argv[1], Path(sys.argv[2]))
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux, where a process can read its own peak")
def test_memory_grows_by_one_copy_of_the_weights(tmp_path: Path) -> None:
    peaks, sizes = [], []
    for name, changes in (("small", {}), ("large", {"n_embd": 512, "n_layer": 7})):
        publish_gpt2(tmp_path / name, **changes)
        command = [sys.executable, "-c", MEASURED, str(tmp_path / name), str(tmp_path / f"our-{name}")]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        sizes.append((tmp_path / name / "model.safetensors").stat().st_size)
    grown = sizes[1] - sizes[0]
    assert grown > 80e6
    assert peaks[1] - peaks[0] < 1.35 * grown
