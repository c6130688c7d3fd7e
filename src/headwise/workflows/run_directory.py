"""The directory of a run: whose it is, and whether a run may go on in it. Its files: bundle/run_files.py."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from headwise.bundle.checkpoint import list_checkpoints
from headwise.bundle.run_files import CACHE, CHECKPOINTS, FINISHED, LOCK, MODEL, RECIPE
from headwise.config.recipe import build_recipe, load_recipe, own_values, print_recipe
from headwise.config.schema import Recipe
from headwise.errors import UsageError, WorkFailed
from headwise.files import check_name, locked_file, write_whole

# Settings that do not change what is computed up to a given update: a run may go on with other values.
_FREE = {
    "training": {
        "steps",
        "epochs",
        "minutes",
        "keep",
        "device",
        "threads",
        "precision",
        "max_bad_updates",
        "patience",
        "shard",
    },
    "data": {"test"},
}


class RunDirectory:
    """Paths of a run, and the rules for going on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe, self.checkpoints, self.model = path / RECIPE, path / CHECKPOINTS, path / MODEL
        self.cache, self.finished = path / CACHE, path / FINISHED
        self._entered = False  # a process has begun a run here before, and may have been killed while it read the text

    @property
    def unfinished(self) -> bool:
        return self.recipe.is_file() and not self.finished.is_file() and bool(list_checkpoints(self.checkpoints))

    @property
    def begun(self) -> bool:
        """Whether there is a run to go on with."""
        return self.recipe.is_file() and bool(list_checkpoints(self.checkpoints))

    def remembered(self, recipe: Recipe) -> Recipe:
        """The recipe with what it leaves out as this run has it: what was chosen once stays."""
        if not self.begun:
            return recipe
        stored, own = own_values(self._stored()), own_values(recipe)
        planned = "minutes" not in stored["training"] and "steps" not in own.get("training", {})
        if planned and stored["training"].get("steps"):  # the minutes were turned into updates when the run began
            own.get("training", {}).pop("minutes", None)
        if own["model"].get("preset", stored["model"].get("preset")) != stored["model"].get("preset"):
            stored["model"] = {}
        merged = {
            name: {**stored.get(name, {}), **own.get(name, {})} if isinstance(stored.get(name), dict) else own.get(name)
            for name in {**stored, **own}
        }
        return build_recipe({name: value for name, value in merged.items() if value is not None})

    def store(self, recipe: Recipe) -> None:
        """Writes the resolved recipe down."""
        write_whole(self.recipe, print_recipe(recipe).encode())

    def complete(self, recipe: Recipe) -> bool:
        """The run is finished, and this recipe asks for no more."""
        return self.finished.is_file() and not self._extended(recipe)

    def claim(self, recipe: Recipe, resume: bool) -> None:
        """Takes the directory for this recipe, or says in one line why it cannot be."""
        if self.complete(recipe):
            raise UsageError(
                f"{self.path} holds a finished run; give another --output, or {self._more()} to train it further"
            )
        if resume and not (list_checkpoints(self.checkpoints) or self.recipe.is_file() or self._entered):
            raise UsageError(f"{self.path} holds no run to resume; leave out --resume to start one there")
        if self.begun:
            self._compare(recipe)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.finished.unlink(missing_ok=True)
        except OSError as error:
            raise WorkFailed(f"cannot write to {self.path}: {error.strerror}") from error
        self.store(recipe)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process per run: a second one would mix its checkpoints in."""
        check_name(self.path)
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; give another --output")
        with ExitStack() as held:
            try:
                self._entered = (self.path / LOCK).exists()
                self.path.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked_file(self.path / LOCK, wait=False))
            except BlockingIOError:
                raise UsageError(f"{self.path} is being trained by another process; give another --output") from None
            except OSError as error:
                raise WorkFailed(f"cannot write to {self.path}: {error.strerror}") from error
            yield

    def finish(self, values: dict[str, Any]) -> None:
        write_whole(self.finished, (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode())

    def _stored(self) -> Recipe:
        return load_recipe(self.recipe)[0]

    def _compare(self, recipe: Recipe) -> None:
        old, new = _fixed(self._stored()), _fixed(recipe)
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        if changed:
            raise UsageError(
                f"{self.path} holds a run of another recipe (different: {', '.join(changed[:4])}); give another "
                "--output, or the same settings to go on with it"
            )

    def _more(self) -> str:
        """A budget that is larger than that of the run, in the words of the recipe."""
        training = self._stored().training
        named = (("steps", training.steps), ("epochs", training.epochs), ("minutes", training.minutes))
        larger = [f"--set training.{name}={2 * value}" for name, value in named if value is not None]
        return " ".join(larger) or "a larger budget"

    def _extended(self, recipe: Recipe) -> bool:
        """A finished run may go on when its budget has grown."""
        old, new = self._stored().training, recipe.training
        pairs = ((old.steps, new.steps), (old.epochs, new.epochs), (old.minutes, new.minutes))
        return any(a is not None and (b is None or b > a) for a, b in pairs)


def _fixed(recipe: Recipe) -> dict[str, Any]:
    """Flat 'section.key' -> value of everything that decides the numbers, as print_recipe stores it."""
    values = tomllib.loads(print_recipe(recipe))
    return {
        f"{section}.{key}": value
        for section, keys in values.items()
        if isinstance(keys, dict)
        for key, value in keys.items()
        if key not in _FREE.get(section, set()) and not (section == "model" and key == "preset")
    }
