"""Several ranks train as one process does, and translate what one process translates."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_models import english_sentences
from fixtures_ranks import VALIDATION, run, succeed, training
from safetensors.torch import load_file


def state(small_recipe: Path, name: str, step: int = 20) -> dict[str, torch.Tensor]:
    return load_file(small_recipe.parent / name / f"checkpoints/step-{step:08d}/training.safetensors")


def assert_same_model(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    """Weights and their average within 1e-5."""
    assert first.keys() == second.keys()
    for name in (name for name in first if not name.startswith("optimizer:")):
        a, b = first[name], second[name]
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0.0, msg=lambda text, name=name: f"{name}: {text}")


def seen(small_recipe: Path, name: str, world: int) -> dict[int, list[int]]:
    """For each update the lines that the ranks saw, those of rank 0 first."""
    updates: dict[int, list[int]] = {}
    for rank in range(world):
        for line in small_recipe.with_name(f"{name}.{rank}").read_text().splitlines():
            number, lines = json.loads(line)
            updates.setdefault(number, []).extend(lines)
    return updates


def identical(small_recipe: Path, first: str, second: str) -> bool:
    files = ("checkpoints/step-00000020/training.safetensors", "model/model.safetensors")
    return all(
        (small_recipe.parent / first / f).read_bytes() == (small_recipe.parent / second / f).read_bytes() for f in files
    )


def compare_with_one(small_recipe: Path, worlds: dict[str, tuple[int, str]], *settings: str) -> None:
    jobs = [training(small_recipe, "one", 1, *settings, record=str(small_recipe.with_name("one-seen")))]
    for name, (world, shard) in worlds.items():
        record = str(small_recipe.with_name(f"{name}-seen"))
        jobs.append(training(small_recipe, name, world, *settings, f"training.shard={shard}", record=record))
    succeed(*jobs)
    alone = seen(small_recipe, "one-seen", 1)
    assert sorted(alone) == list(range(1, 21))
    assert min(map(len, alone.values())) == 1  # fewer sentences than ranks: some have nothing to do
    for name, (world, _) in worlds.items():
        assert_same_model(state(small_recipe, name), state(small_recipe, "one"))
        assert seen(small_recipe, f"{name}-seen", world) == alone


def test_after_20_updates_replicas_and_shards_have_the_weights_of_one_process_and_saw_its_sentences(
    small_recipe: Path,
) -> None:
    compare_with_one(small_recipe, {"four": (4, "false"), "shards": (2, "true")})


@pytest.mark.slow
@pytest.mark.parametrize("settings", [("training.accumulate=3",), ("training.optimizer=momentum", *VALIDATION)])
def test_four_replicas_and_four_shards_have_the_weights_of_one_process(
    small_recipe: Path, settings: tuple[str, ...]
) -> None:
    compare_with_one(small_recipe, {"replicas": (4, "false"), "shards": (4, "true"), "three": (3, "true")}, *settings)


@pytest.mark.slow
@pytest.mark.parametrize("shard", ["false", "true"])
def test_a_language_model_trains_alike_on_one_and_on_two_ranks(small_recipe: Path, shard: str) -> None:
    text = small_recipe.read_text(encoding="utf-8").replace(
        'source = "train.en"\ntarget = "train.zh"', 'text = "train.en"'
    )
    text = text.replace('["en", "zh"]', '["en"]').replace("dropout = 0.1", "").replace('"tiny"', '"lm-small"')
    text = text.replace("encoder_layers = 1\ndecoder_layers = 1", 'family = "lm"\nlayers = 2\nmax_length = 24')
    small_recipe.write_text(text, encoding="utf-8")
    succeed(training(small_recipe, "one", 1), training(small_recipe, "two", 2, f"training.shard={shard}"))
    assert_same_model(state(small_recipe, "one"), state(small_recipe, "two"))


def test_two_ranks_are_two_threads_to_the_last_bit_and_a_signal_to_one_stops_both_at_one_update(
    small_recipe: Path,
) -> None:
    drops = ("model.dropout=0.2", "training.validate_every=10", *VALIDATION)
    stop = {"rank": 1, "step": 7, "kind": "signal"}
    threads, stopped, resumed = run(
        training(small_recipe, "threads", 1, *drops, "training.threads=2"),
        training(small_recipe, "ranks", 2, *drops, fault=stop, alone=True),
        training(small_recipe, "ranks", 2, *drops),
    )
    assert threads["codes"] == [0]
    assert stopped["codes"] == [143, 143], stopped["errors"]
    assert "stopped at update 7 and saved" in stopped["errors"][0]
    assert resumed["codes"] == [0, 0], resumed["errors"]
    assert "resuming from update 7" in resumed["errors"][0]
    assert resumed["errors"][1] == ""  # rank 0 speaks for all
    assert identical(small_recipe, "threads", "ranks")


def goes_on(small_recipe: Path, *stages: tuple[int, str]) -> None:
    """20 updates in stages, each with its own number of ranks and with or without shards, are 20 updates of one."""
    steps = [20 * (number + 1) // len(stages) for number in range(len(stages))]
    jobs = [
        training(small_recipe, "many", world, f"training.steps={step}", f"training.shard={shard}")
        for step, (world, shard) in zip(steps, stages, strict=True)
    ]
    succeed(training(small_recipe, "one", 1), *jobs)
    assert_same_model(state(small_recipe, "many"), state(small_recipe, "one"))
    optimizers = [state(small_recipe, name) for name in ("many", "one")]
    moments = [name for name in optimizers[0] if name.endswith("/exp_avg_sq")]
    assert moments
    assert all(torch.allclose(*(tensors[name] for tensors in optimizers), atol=1e-6) for name in moments)


def test_a_run_saved_on_two_ranks_goes_on_on_one_and_the_reverse(small_recipe: Path) -> None:
    goes_on(small_recipe, (2, "false"), (1, "false"), (2, "false"))


@pytest.mark.slow
def test_a_run_goes_on_on_any_number_of_ranks_sharded_or_not(small_recipe: Path) -> None:
    goes_on(small_recipe, (2, "true"), (4, "false"), (1, "false"), (4, "true"), (2, "false"))


@pytest.mark.slow
@pytest.mark.parametrize("shard", ["false", "true"])
def test_four_ranks_that_were_stopped_go_on_to_the_last_bit(small_recipe: Path, shard: str) -> None:
    settings = ("model.dropout=0.2", f"training.shard={shard}")
    stop = {"rank": 2, "step": 7, "kind": "signal"}
    jobs = [
        training(small_recipe, "alone", 4, *settings),
        training(small_recipe, "stopped", 4, *settings, fault=stop, alone=True),
    ]
    assert [r["codes"] for r in run(*jobs, training(small_recipe, "stopped", 4, *settings))] == [
        [0] * 4,
        [143] * 4,
        [0] * 4,
    ]
    assert identical(small_recipe, "alone", "stopped")


def test_a_failure_on_one_rank_ends_all_with_its_name_and_an_infinite_loss_is_learned_from_by_none(
    small_recipe: Path,
) -> None:
    infinite, broken = ({"rank": 1, "step": 3, "kind": kind} for kind in ("infinite", "raise"))
    bad, failed, mistaken = run(
        training(small_recipe, "bad", 2, fault=infinite, record=str(small_recipe.with_name("bad-seen"))),
        training(small_recipe, "failed", 2, fault=broken, alone=True),
        training(small_recipe, "mistaken", 2, "data.source=nowhere.en", alone=True),
    )
    assert bad["codes"] == [0, 0]
    records = [json.loads(line) for line in (small_recipe.parent / "bad/log.jsonl").read_text().splitlines()]
    (skipped,) = (record for record in records if record["event"] == "skipped")
    assert (skipped["step"], skipped["lines"]) == (3, seen(small_recipe, "bad-seen", 2)[3][:20])
    assert failed["codes"] == [1, 1]
    assert "headwise: rank 1 failed" in failed["errors"][1]
    assert "a fault that was asked for" in failed["errors"][1]
    assert "headwise: error: rank 0: lost contact with another rank" in failed["errors"][0]
    assert mistaken["codes"] == [2, 2]
    assert "headwise: error: rank 0: " in mistaken["errors"][0]
    assert "nowhere.en" in mistaken["errors"][0]
    assert "headwise: error: rank 1: stopped because rank 0 failed: " in mistaken["errors"][1]


@pytest.mark.slow
@pytest.mark.parametrize("shard", ["false", "true"])
def test_early_stopping_and_the_clock_of_rank_0_end_all_ranks(small_recipe: Path, shard: str) -> None:
    stuck = ("training.learning_rate=1e-30", "training.schedule=constant", "training.warmup=0")
    early = ("training.steps=1000", "training.validate_every=2", "training.patience=2", "training.average=2")
    settings = (*stuck, *VALIDATION, f"training.shard={shard}")
    succeed(
        training(small_recipe, "early", 2, *settings, *early, "training.save_every=2"),
        training(small_recipe, "late", 2, *settings, "training.steps=100000", "training.minutes=0.001"),
    )
    ends = [json.loads((small_recipe.parent / name / "finished.json").read_text()) for name in ("early", "late")]
    assert [end["reason"] for end in ends] == ["patience", "minutes"]
    assert ends[0]["step"] == 6
    assert (small_recipe.parent / "early/model/model.safetensors").is_file()


def translation(model: Path, text: Path, output: Path, world: int, *options: str, **more: Any) -> dict[str, Any]:
    arguments = ["translate", "--model", str(model), "--input", str(text), "--output", str(output), *options]
    return {"world": world, "arguments": arguments, **more}


@pytest.mark.parametrize("engine", ["ctranslate2", pytest.param("torch", marks=pytest.mark.slow)])
def test_a_file_shared_by_ranks_is_translated_as_by_one_and_a_finished_part_is_not_done_again(
    word_model: Path, tmp_path: Path, engine: str
) -> None:
    model = Path(shutil.copytree(word_model, tmp_path / "model"))
    text, alone, shared = tmp_path / "big.en", tmp_path / "alone.de", tmp_path / "shared.de"
    text.write_text("".join(f"{line}\n" for line in ["", *english_sentences(3500, seed=9)]), encoding="utf-8")
    options = ("--engine", engine, "--beam", "1", "--scores")
    crash = {"rank": 1, "step": 3, "kind": "die"}  # the last of four parts
    one, crashed = run(
        translation(model, text, alone, 1, *options),
        translation(model, text, shared, 2, *options, fault=crash),
    )
    assert one["codes"] == [0]
    assert crashed["codes"][1] == -9
    assert not shared.exists()
    parts = Path(f"{shared}.parts")
    first = parts / "00000001.txt"  # of the rank that died
    assert first.read_text(encoding="utf-8") == "".join(alone.read_text(encoding="utf-8").splitlines(True)[1024:2048])
    assert not (parts / "00000003.txt").exists()
    first.write_text(first.read_text(encoding="utf-8").upper(), encoding="utf-8")  # to be known again
    (again,) = run(translation(model, text, shared, 3, *options))
    assert again["codes"] == [0, 0, 0], again["errors"]
    lines = alone.read_text(encoding="utf-8").splitlines(True)
    expected = [*lines[:1024], *map(str.upper, lines[1024:2048]), *lines[2048:]]
    assert shared.read_text(encoding="utf-8") == "".join(expected)
    assert not parts.exists()


def test_parts_of_another_job_are_not_taken_over(word_model: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(word_model, tmp_path / "model"))
    text, output = tmp_path / "text.en", tmp_path / "out.de"
    text.write_text("one two\n", encoding="utf-8")
    parts = Path(f"{output}.parts")
    parts.mkdir()
    (parts / "00000000.txt").write_text("of another text\n", encoding="utf-8")
    (parts / "about.json").write_text("{}", encoding="utf-8")
    (done,) = run(translation(model, text, output, 2))
    assert done["codes"] == [0, 0]
    assert "parts of another job" in done["errors"][0]
    assert output.read_text(encoding="utf-8") == "eins zwei\n"
