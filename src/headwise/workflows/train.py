"""`headwise train`: checks the data, prepares it, trains, keeps the best model, and averages at the end."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headwise import __version__
from headwise.bundle.assets import Assets
from headwise.bundle.averaging import average_weights
from headwise.bundle.checkpoint import (
    checkpoint_path,
    list_checkpoints,
    newest_good,
    read_checkpoint,
    remove_leftovers,
)
from headwise.bundle.directory import copy_files, open_bundle, read_json, write_directory
from headwise.bundle.run_files import LOG
from headwise.bundle.weights import load_model, named_weights, save_model, set_weights, start_from
from headwise.config.cores import training_cores
from headwise.config.ranks import Ranks
from headwise.config.recipe import absolute_paths, build_recipe, own_values
from headwise.config.schema import Recipe
from headwise.data.batch import Batch
from headwise.data.cursor import Batches, Cursor, walk
from headwise.data.prefetch import Prefetch
from headwise.errors import RecipeError
from headwise.evaluation.contamination import training_sketch
from headwise.models.interface import Network
from headwise.models.registry import build_model
from headwise.nn import Dropout, MultiHeadAttention
from headwise.tasks import find_task
from headwise.tasks.automatic import paced
from headwise.tasks.choices import choices_for
from headwise.tasks.interface import Prepared
from headwise.training.device import choose_device, choose_precision, one_core_each
from headwise.training.diagnostics import Diagnostics
from headwise.training.distributed import World, joined
from headwise.training.ema import MovingAverage
from headwise.training.freezing import freeze
from headwise.training.gather import FullModel, Replica
from headwise.training.hooks import Log, Save, Scorer, StopAtBadNumbers, Validate
from headwise.training.loop import Hook, Trainer
from headwise.training.optimizers import build_optimizer
from headwise.training.pace import Pace
from headwise.training.parallel import RankUpdater, replicate, shard
from headwise.training.resume import restore
from headwise.training.schedules import build_schedule, warmup_updates
from headwise.training.signals import stop_on_signal
from headwise.training.step import Updater
from headwise.training.tensorboard import TensorBoard
from headwise.training.timing import seconds_per_update
from headwise.training.verdict import forecast, verdict
from headwise.workflows.memory_check import check_memory, used_memory
from headwise.workflows.prepare import prepare_once
from headwise.workflows.run_directory import RunDirectory
from headwise.workflows.train_checks import changed_architecture, check_data, check_settings
from headwise.workflows.train_plan import (
    WORTH_TIMING,
    foretold,
    planned,
    tell_choices,
    total_steps,
    updates_that_fit,
)


@dataclass(frozen=True)
class Finished:
    """How a run ended."""

    run: Path
    reason: str  # steps, epochs, minutes, patience, SIGINT, SIGTERM
    step: int
    seconds: float
    best: dict[str, Any] = field(default_factory=dict)
    verdict: str = ""  # one sentence; empty for a run that was interrupted

    @property
    def model(self) -> Path:
        return self.run / "model"

    @classmethod
    def of(cls, run: RunDirectory) -> Finished:
        """Reads how a finished run ended."""
        values = read_json(run.finished)
        return cls(
            run.path, values["reason"], values["step"], values["seconds"], values["best"], values.get("verdict", "")
        )


Tell = Callable[[str], None]


def train(
    recipe: Recipe,
    base: Path,
    output: Path,
    *,
    resume: bool = False,
    hooks: Sequence[Hook] = (),
    tell: Tell = lambda line: None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Finished:
    """Trains a recipe whose paths are relative to `base` into the directory `output`, or resumes the run there."""
    recipe = absolute_paths(recipe, base)
    check_settings(recipe)
    run, ranks = RunDirectory(output), Ranks.of_environment()
    device = choose_device(recipe.training.device, ranks)
    cores = 1 if ranks.size == 1 else training_cores(recipe.training.threads, ranks.local_size)
    with joined(device) as world, ExitStack() as held:

        def begin() -> dict[str, Any]:
            held.enter_context(run.locked())
            completed = run.remembered(recipe)
            if ranks.restarts and run.complete(completed):  # only the end of some process failed
                return {"finished": True}
            if not run.begun:
                facts = check_data(completed, run, tell)
                completed, taken = choices_for(completed, run.path, facts, run.cache, progress)
                tell_choices(taken, tell)
                check_settings(completed)
            check_memory(completed, device, ranks.size if completed.training.shard else 1)
            run.claim(completed, resume)
            remove_leftovers(run.checkpoints)
            remove_leftovers(run.path)
            return {"finished": False, "recipe": own_values(completed)}

        told = world.on_rank_0(begin)
        if told["finished"]:
            return Finished.of(run)
        completed = build_recipe(json.loads(json.dumps(told["recipe"])), origin=str(run.recipe))
        with one_core_each(cores):
            return _Training(completed, run, world, device, tell, progress).run(hooks)


class _Training:
    """Builds the parts of one run and connects them."""

    def __init__(
        self, recipe: Recipe, run: RunDirectory, world: World, device: torch.device, tell: Tell,
        progress: Callable[[str, int, int | None], None] | None,
    ) -> None:  # fmt: skip
        self.recipe, self.directory, self.world, self.device, self.tell = recipe, run, world, device, tell
        self.task = find_task(recipe.task_name)
        self.sharded = recipe.training.shard and world.size > 1
        start = None if recipe.model.from_ is None else open_bundle(recipe.model.from_)
        if start is not None and start.declared.name != recipe.model.family:
            raise RecipeError(
                f"model.from has the family '{start.family}', but model.family is '{recipe.model.family}'; change one"
            )
        given = None if start is None else Assets.load(start.path)
        make = partial(self.task.prepare, recipe, run.path, run.cache, start=given, progress=progress)
        self.prepared: Prepared = prepare_once(world, self.task, make, run.cache)
        self.objective = self.task.objective(recipe, self.prepared)
        torch.manual_seed(recipe.training.seed)
        # A sharded model is moved to the device layer by layer, since all of it might not fit there.
        place = torch.device("cpu") if self.sharded else device
        sizes = self.task.sizes(self.prepared.assets, recipe)
        if start is None:
            settings = recipe.model.settings.model_dump(mode="json")
            self.model = build_model(recipe.model.family, {**sizes, **settings}).to(place)
        else:
            self.model, fresh = start_from(start, {**sizes, **changed_architecture(start, recipe)})
            self.model.to(place)
            if fresh and world.leads:
                tell(f"new weights, which {start.path} does not have for this task: {', '.join(fresh)}")
            _set_dropout(self.model, recipe)
        if recipe.training.freeze and (frozen := freeze(self.model, recipe.training.freeze)) and world.leads:
            tell(f"{frozen:,} of {sum(p.numel() for p in self.model.parameters()):,} weights are frozen")
        self.replica = Replica(copy.deepcopy(self.model), device) if self.sharded and world.leads else None

    def run(self, extra: Sequence[Hook]) -> Finished:
        batches = self._batches()
        self._plan(batches)
        recipe, settings = self.recipe, self.recipe.training
        total = total_steps(recipe, batches.count(0))
        warmup = warmup_updates(settings, total) if settings.schedule != "constant" else 0
        warning = forecast(total, warmup, recipe.model.from_ is None)
        if warning and self.world.leads and not self.directory.begun:
            self.tell(f"warning: {warning}")
        schedule = build_schedule(settings, self.model.architecture["model_dim"], total)
        updater = self._updater()
        average = MovingAverage(self.model, settings.ema) if settings.ema else None
        full = FullModel(self.model, updater.optimizer, self.world, average, self.replica, updater.carry)
        validate = Validate(self._validation_batches, self._scorer(), settings.best, self.task.loss, self.task.falling)
        save = Save(self.directory.checkpoints, self._save_model, self._publish)
        hooks = self._hooks(validate, save, extra)
        trainer = Trainer(updater, schedule, settings, full, hooks, total, world=self.world)
        self._resume(trainer, save)
        items = walk(batches, trainer.cursor, settings.epochs)
        if self.device.type == "cuda":  # copies from page-locked memory overlap with the GPU's work
            items = ((batch.pin(), after) for batch, after in items)
        with stop_on_signal(trainer), Prefetch(items) as ready:
            reason = trainer.run(ready)
        best = validate.best or {}
        if trainer.ended and self.world.leads:
            best = self._end(trainer, validate, save, best)
        said = Finished.of(self.directory).verdict if trainer.ended and self.world.leads else ""
        return Finished(self.directory.path, reason, trainer.step, trainer.elapsed(), best, said)

    def _plan(self, batches: Batches) -> None:
        """Times a few updates, tells how long the run takes, and turns minutes into a number of updates, once, so that
        the schedule is a function of the update alone.
        """
        known = total_steps(self.recipe, batches.count(0))
        if known is not None and self.directory.begun:
            return
        seconds, steps = None, known or 0
        if known is None or (known >= WORTH_TIMING and self.world.size == 1):
            seconds = seconds_per_update(lambda: self._make(Updater, copy.deepcopy(self.model)), batches)
            steps = known or self.world.broadcast(updates_that_fit(self.recipe, seconds))
            given = None if known else self.recipe.training.minutes
            self.tell(foretold(steps, seconds, batches.count(0), used_memory(self.device), given))
        self.recipe, chosen = (paced if known else planned)(self.recipe, steps, seconds)
        tell_choices(chosen, self.tell)
        if self.world.leads:
            self.directory.store(self.recipe)

    def _updater(self) -> Updater:
        make: Callable[..., Updater] = Updater
        if self.sharded:
            make = partial(RankUpdater, shard(self.model, self.objective, self.device, self.world.size), self.world)
        elif self.world.size > 1:
            make = partial(RankUpdater, replicate(self.model, self.objective), self.world)
        return self._make(make, self.model)

    def _make(self, make: Callable[..., Updater], model: Network) -> Updater:
        settings, threaded = self.recipe.training, self.world.size == 1 and self.device.type == "cpu"
        return make(
            model, build_optimizer(settings, model.parameters()), loss=self.objective,
            smoothing=settings.label_smoothing, clip_norm=settings.clip_norm, accumulate=settings.accumulate,
            autocast=choose_precision(settings, self.device), seed=settings.seed,
            workers=training_cores(settings.threads) if threaded else 1,
        )  # fmt: skip

    def _scorer(self) -> Scorer | None:
        """Builds the scorer of the task, on the model or replica that has all weights."""
        if not self.world.leads:
            return None
        model = self.model if self.replica is None else self.replica.model
        return self.task.scorer(model, self.prepared.assets, self.recipe)

    def _hooks(self, validate: Validate, save: Save, extra: Sequence[Hook]) -> list[Hook]:
        if not self.world.leads:
            return []
        settings = self.recipe.training
        hooks: list[Hook] = [Log(self.directory.path, settings.log_every), Diagnostics(), Pace()]
        hooks += [StopAtBadNumbers(settings.max_bad_updates, self.prepared.training.place)]
        hooks += [*([validate] if self.prepared.validation is not None else []), *extra]
        return [*hooks, TensorBoard(self.directory.path), save]

    # ---- data

    @property
    def _longest(self) -> int | None:
        return self.model.segment or self.model.max_length

    def _batches(self) -> Batches:
        batches = self.task.batches(
            self.prepared.training, self.recipe, self.prepared.assets, self._longest,
            rank=self.world.rank, world=self.world.size,
        )  # fmt: skip
        dropped = getattr(batches, "dropped", 0)
        if dropped and self.world.leads:
            self.tell(
                f"{dropped} items are left out because they are longer than a batch or than the model's maximum length"
            )
        return batches

    def _validation_batches(self) -> Iterator[Batch]:
        store, assets = self.prepared.validation, self.prepared.assets
        assert store is not None
        held_out = self.task.batches(store, self.recipe, assets, self._longest, shuffle=False)
        yield from (held_out.make(Cursor(0, index)) for index in range(held_out.count(0)))

    # ---- resuming, saving, finishing

    def _resume(self, trainer: Trainer, save: Save) -> None:
        """Restores the newest intact checkpoint, which rank 0 chooses and all ranks read."""
        checkpoint = None
        if self.world.leads:
            checkpoint = newest_good(
                self.directory.checkpoints, lambda error: self.tell(f"{error}; trying the checkpoint before it")
            )
        step = self.world.broadcast(-1 if checkpoint is None else checkpoint.step)
        if step < 0:
            return
        checkpoint = checkpoint or read_checkpoint(checkpoint_path(self.directory.checkpoints, step))
        restore(trainer, checkpoint)
        if not self.world.leads:
            return
        self.tell(f"resuming from update {trainer.step} ({checkpoint.path})")
        best = save.best_checkpoint()
        if best is not None and best.is_dir():
            self._publish(best / "model")  # the run may have been killed before it published this

    def _save_model(
        self, directory: Path, weights: dict[str, torch.Tensor], card: dict[str, Any] | None = None
    ) -> None:
        save_model(
            directory, self.model, self.prepared.assets, family=self.recipe.model.family, task=self.task.name,
            languages=self.recipe.data.common_languages, decoding=self.recipe.decoding.model_dump(),
            card=card or self._card(), weights=weights,
        )  # fmt: skip

    def _card(self) -> dict[str, Any]:
        return {
            "headwise": __version__,
            "recipe": json.loads(self.recipe.model_dump_json(by_alias=True, exclude_none=True)),
            "data": {"content": self.prepared.fingerprints, "sentences": len(self.prepared.training)},
            "parameters": sum(p.numel() for p in self.model.parameters()),
        }

    def _publish(self, source: Path) -> None:
        """Copies a checkpoint's model to RUN/model."""
        if self.directory.model.is_dir() and _same(source, self.directory.model):
            return
        write_directory(self.directory.model, lambda new: copy_files(source, new))

    def _end(self, trainer: Trainer, validate: Validate, save: Save, best: dict[str, Any]) -> dict[str, Any]:
        """Averages checkpoints if the recipe says so, and completes the card of RUN/model."""
        every, wanted = self.recipe.training.save_every, self.recipe.training.average
        regular = [
            path
            for step, path in list_checkpoints(self.directory.checkpoints)
            if step % every == 0 or step == trainer.step
        ]
        if wanted > 1 and len(regular) > 1:
            _, weights = average_weights(regular[-wanted:])
            if self.replica is not None:  # training is over: from here on, use the full copy
                trainer.full.model, trainer.full.replica = self.replica.model.to(self.device), None
            set_weights(trainer.model, weights)
            trainer.full.average = None
            validated = self.prepared.validation is not None
            record = (
                validate.validate(trainer, "average")
                if validated
                else {"event": "average", "step": trainer.step, "best": True}
            )
            if not validated:
                trainer.emit(record)
            if record["best"]:
                self._save_model(self.directory.model, weights)
                best = validate.best or {}
        elif self.prepared.validation is None or not self.directory.model.is_dir():
            self._publish(list_checkpoints(self.directory.checkpoints)[-1][1] / "model")
        self._write_card(best)
        trainer.emit({"event": "end", "step": trainer.step, "reason": trainer.stop, "best": best})
        records = [json.loads(line) for line in (self.directory.path / LOG).open(encoding="utf-8")]
        self.directory.finish(
            {
                "reason": trainer.stop,
                "step": trainer.step,
                "seconds": round(trainer.elapsed(), 1),
                "best": best,
                "verdict": verdict(records, self.recipe.model.from_ is None),
            }
        )
        return best

    def _fingerprints(self) -> dict[str, Any]:
        """Computes the sketch with which `evaluate` finds test lines that were trained on."""
        named = self.task.training_lines(self.recipe, self.directory.path)
        return {} if named is None else {named[0]: training_sketch(named[1])}

    def _write_card(self, best: dict[str, Any]) -> None:
        bundle = open_bundle(self.directory.model)
        weights = named_weights(load_model(bundle))
        data = {**bundle.card["data"], "fingerprints": self._fingerprints()}
        card = {**bundle.card, "data": data, "validation": best}
        card |= self.task.describe(self.directory.model, self.recipe, self.prepared)
        self._save_model(self.directory.model, weights, card)


def _set_dropout(model: Network, recipe: Recipe) -> None:
    own = recipe.model.own
    if "dropout" in own:
        for module in model.modules():
            if isinstance(module, Dropout):
                module.rate = own["dropout"]
            elif isinstance(module, MultiHeadAttention):
                module.dropout = own["dropout"]


def _same(first: Path, second: Path) -> bool:
    return open_bundle(first, verify=False).files == open_bundle(second, verify=False).files
