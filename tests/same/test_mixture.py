"""A mixture is trained like one corpus: exactly resumable, with a validation part split off, by any family."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_mixtures import TASKS, mixture, texts, write_mixture_recipe

import headwise
from headwise.bundle.directory import open_bundle
from headwise.config.recipe import build_recipe, load_recipe
from headwise.errors import RecipeError, UsageError
from headwise.training.loop import Hook, Trainer
from headwise.training.step import Update
from headwise.workflows.check import check
from headwise.workflows.evaluate import evaluate
from headwise.workflows.train import train

FAMILIES: dict[str, dict[str, Any]] = {
    "t5": {},
    "transformer": {"family": "transformer", "head_dim": None, "norm": "pre"},
    "rnn": {"family": "rnn", "hidden_dim": 32, "num_heads": None, "head_dim": None, "ff_dim": None},
}


class StopAt(Hook):
    def __init__(self, step: int) -> None:
        self.step = step

    def after_update(self, trainer: Trainer, update: Update, batch: object) -> None:
        if trainer.step == self.step:
            trainer.stop = "SIGTERM"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stopped_run_ends_bit_identical(family: str, tmp_path: Path) -> None:
    parts = mixture(tmp_path, count=60)
    parts[0]["weight"], parts[1]["weight"] = 0.4, 1.5
    recipe = write_mixture_recipe(tmp_path, count=60, model=FAMILIES[family], data={"mixture": parts})
    whole = train(*load_recipe(recipe), tmp_path / "alone")
    for step in (2, 5):
        train(*load_recipe(recipe), tmp_path / "stopped", hooks=(StopAt(step),))
    train(*load_recipe(recipe), tmp_path / "stopped")
    for name in ("model/model.safetensors", "log.jsonl", "model/preprocessing.json"):
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes(), name
    found = {task: headwise.load(whole.model, engine="torch", prefix=f"{task}: ") for task in TASKS}
    assert [one.prefix for one in found.values()] == ["copy: ", "reverse: "]
    with pytest.raises(UsageError, match="trained for several things: choose --prefix 'copy:'"):
        headwise.load(whole.model)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose validation texts are split off."""
    folder = tmp_path_factory.mktemp("split")
    parts = [{key: value for key, value in part.items() if key != "validation"} for part in mixture(folder, 300)]
    recipe = write_mixture_recipe(folder, data={"mixture": parts}, training={"save_every": 8, "validate_every": 8})
    train(*load_recipe(recipe), folder / "run")
    return folder


def test_a_validation_part_is_split_off_each_part(run: Path) -> None:
    resolved = load_recipe(run / "run" / "recipe.toml")[0]
    assert resolved.data.split == 0.1
    assert [part.name for part in resolved.data.parts] == list(TASKS)
    (record,) = (r for r in map(json.loads, (run / "run" / "log.jsonl").open()) if r["event"] == "validation")
    assert {"bleu", "bleu copy", "bleu reverse", "chrf copy", "chrf reverse"} <= set(record)


def test_the_model_directory_says_what_it_can_be_told(run: Path) -> None:
    kept = json.loads((run / "run" / "model" / "preprocessing.json").read_text())
    assert [(part["name"], part["prefix"]) for part in kept["parts"]] == [("copy", "copy: "), ("reverse", "reverse: ")]
    translators = [headwise.load(run / "run" / "model", engine="torch", prefix=prefix) for prefix in ("copy: ", "")]
    sources = texts(8, seed=5)
    told = translators[0].translate(sources, beam=1)
    written = translators[1].translate([f"copy: {text}" for text in sources], beam=1, split_sentences=False)
    assert [one.ids for one in told] == [one.ids for one in written]
    listed = translators[1].translate(sources, beam=1, source_prefix=["copy: "] * 8)
    assert [one.ids for one in told] == [one.ids for one in listed]
    fast = headwise.load(run / "run" / "model", engine="ctranslate2", precision="float32", prefix="copy: ")
    assert [one.text for one in fast.translate(sources, beam=1)] == [one.text for one in told]


def test_evaluation_on_the_recipe_reports_every_part(run: Path) -> None:
    recipe = write_mixture_recipe(run / "run")
    found = evaluate(str(run / "run" / "model"), recipe=str(recipe), engine="torch", beam=1).as_dict()
    assert list(found["parts"]) == list(TASKS)
    values = [{s["name"]: s["value"] for s in part["scores"]}["BLEU"] for part in found["parts"].values()]
    assert found["means"]["BLEU"] == pytest.approx(sum(values) / 2)
    alone = evaluate(
        str(run / "run" / "model"), prefix="reverse: ", engine="torch", beam=1,
        source=str(run / "run" / "reverse.val.source"), reference=[str(run / "run" / "reverse.val.target")],
    )  # fmt: skip
    assert alone.as_dict()["scores"][0]["value"] == pytest.approx(values[1])
    assert "prefix:reverse:" in alone.as_dict()["decoding"]


def test_check_reports_on_every_part(tmp_path: Path) -> None:
    report = check(*load_recipe(write_mixture_recipe(tmp_path)))
    assert [side.name for side in report.sides] == ["copy source", "copy target", "reverse source", "reverse target"]
    assert report.counts.kept == 600
    assert any(
        finding.message.startswith("copy: 300 pairs (100.0%) have a target equal") for finding in report.findings
    )


def test_prefixes_of_a_column_are_read_with_the_text(tmp_path: Path) -> None:
    rows = [f"{task}: \t{text}\t{text}" for task in TASKS for text in texts(100, seed=1)]
    (tmp_path / "train.tsv").write_text("".join(f"{row}\n" for row in rows))
    data = {"mixture": None, "source": "train.tsv", "fields": ["2", "3", "1"], "split": 0.1}
    recipe = write_mixture_recipe(tmp_path, data=data, training={"save_every": 8, "validate_every": 8})
    finished = train(*load_recipe(recipe), tmp_path / "run")
    tokenizer = headwise.load(finished.model, engine="torch", prefix="copy: ").tokenizers.source
    assert {"copy:", "reverse:"} <= set(tokenizer.vocabulary)
    with pytest.raises(UsageError, match="with a prefix for each text"):
        headwise.load(finished.model)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"source": "a"}, r"data\.source cannot stand beside \[\[data\.mixture\]\]: move it into a part"),
        ({"prefix": "x: "}, r"data\.prefix cannot stand beside"),
        ({"mixture": [{"source": "a", "name": "x"}, {"source": "b", "name": "x"}]}, "two parts .* are named 'x'"),
        ({"mixture": [{"source": "a", "validation": {"source": "v"}}, {"source": "b"}]},
         r"part '2' of \[\[data\.mixture\]\] has no validation text, but others have"),
        ({"mixture": [{"source": "a", "weight": 0}]}, "data.mixture.weight must be greater than 0, not 0"),
        ({"mixture": [{"source": "a", "wait": 1}]}, "'data.mixture.wait'; did you mean 'data.mixture.weight'"),
        ({"mixture": [{"source": "a", "prefix": "x: ", "fields": ["1", "2", "3"]}]}, "both give the prefix"),
    ],
)  # fmt: skip
def test_a_wrong_mixture_is_refused_in_one_line(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(RecipeError, match=problem):
        build_recipe({"data": {"mixture": [{"source": "a", "target": "b"}], **changes}})


def test_tasks_that_do_not_mix_say_so(tmp_path: Path) -> None:
    recipe = build_recipe({"task": "generate", "model": {"family": "lm"}, "data": {"mixture": [{"text": "a"}]}})
    with pytest.raises(RecipeError, match="task 'generate' has one corpus"):
        train(recipe, tmp_path, tmp_path / "run")
    missing = build_recipe({"data": {"mixture": [{"name": "one", "text": "a"}]}})
    with pytest.raises(RecipeError, match=r"does not use 'text' in part 'one' of data.mixture, but source and target"):
        train(missing, tmp_path, tmp_path / "run")


def test_a_model_of_the_first_task_is_fine_tuned_on_the_second(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "run" / "model", tmp_path / "start")
    (part,) = mixture(tmp_path, 60)[1:]
    names = {key: part[key] for key in ("source", "target", "validation", "prefix")}
    recipe = write_mixture_recipe(
        tmp_path, data={"mixture": None, **names},
        model={**dict.fromkeys(("model_dim", "num_heads", "head_dim", "encoder_layers", "decoder_layers", "ff_dim")),
               "from": "start"},
        training={"steps": 2},
    )  # fmt: skip
    finished = train(*load_recipe(recipe), tmp_path / "run")
    assert headwise.load(finished.model, engine="torch").prefix == "reverse: "  # the only one: nothing to choose
    first, second = (load_file(path / "model.safetensors") for path in (tmp_path / "start", finished.model))
    assert any(not torch.equal(first[name], second[name]) for name in first)
    assert open_bundle(finished.model).languages == ()
