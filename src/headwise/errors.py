"""The one exception tree: every mistake that a user can make is a HeadwiseError with one clear line."""

from __future__ import annotations

from pathlib import Path


class HeadwiseError(Exception):
    """A mistake with a remedy. Its text is one line; the command line prints it and exits with `exit_code`."""

    exit_code = 2


class UsageError(HeadwiseError):
    """The call itself is wrong: an argument, a combination of options."""


class RecipeError(HeadwiseError):
    """A recipe has an unknown key, a value of the wrong type, or values that contradict each other."""


class DataError(HeadwiseError):
    """A corpus cannot be used as it is. Names the file and, where there is one, the line (counted from 1)."""

    def __init__(self, problem: str, *, file: str | Path | None = None, line: int | None = None) -> None:
        self.problem, self.file, self.line = problem, file, line
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{place}{problem}")


class ModelError(HeadwiseError):
    """A model directory or checkpoint is missing, damaged, or of a format that this version does not know."""


class ShapeError(HeadwiseError, ValueError):
    """Tensors or sizes that do not fit each other."""


class WorkFailed(HeadwiseError):
    """The call was right, but the work could not be finished (a full disk, a loss that is not a number)."""

    exit_code = 1
