"""What benchmarks of quality share: runs that are trained once and kept, and their options."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwise.config.schema import Recipe
from headwise.workflows.run_directory import RunDirectory
from headwise.workflows.train import Finished, train


def parser(description: str | None, work: str, minutes: float) -> argparse.ArgumentParser:
    """The options that all of them have; `work` names the folder of the runs."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--minutes", type=float, default=minutes, help="of training, for each run")
    made.add_argument("--corpora", type=Path, default=Path(os.environ.get("HEADWISE_DATA", ".")))
    made.add_argument("--work", type=Path, default=Path.home() / ".cache" / "headwise" / work)
    made.add_argument("--json", type=Path, help="write the figures into this file")
    return made


def trained(recipe: Recipe, base: Path, folder: Path) -> Finished:
    """Trains, unless the folder has a run that has ended."""
    directory = RunDirectory(folder)
    return Finished.of(directory) if directory.finished.is_file() else train(recipe, base, folder, tell=print)


def keep(results: Mapping[str, Any], file: Path | None) -> None:
    if file:
        file.write_text(json.dumps(results, indent=1), encoding="utf-8")
