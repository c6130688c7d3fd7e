"""The exceptions of Headwise: every problem that a user can solve is a HeadwiseError with a one-line message."""

from __future__ import annotations

from pathlib import Path


class HeadwiseError(Exception):
    """A problem with a remedy. The command line prints its one-line message and exits with `exit_code`."""

    exit_code = 2


class UsageError(HeadwiseError):
    """The call itself is wrong: an argument, or a combination of options."""


class TooLarge(UsageError):
    """The call asks for more than may be done at once."""


class RecipeError(HeadwiseError):
    """A recipe has an unknown key, a value of the wrong type, or values that contradict each other."""


class DataError(HeadwiseError):
    """A corpus cannot be used as it is. Names the file and, if there is one, the line (from 1)."""

    def __init__(self, problem: str, *, file: str | Path | None = None, line: int | None = None) -> None:
        self.problem, self.file, self.line = problem, file, line
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        super().__init__(f"{place}{problem}")


class VocabularyTooLarge(DataError):
    """A vocabulary has more tokens than its text allows, which are `most`."""

    def __init__(self, problem: str, most: int) -> None:
        self.most = most
        super().__init__(problem)


class ModelError(HeadwiseError):
    """A model directory or checkpoint is missing, damaged, or in a format unknown to this version."""


class ShapeError(HeadwiseError, ValueError):
    """Shapes or sizes do not match."""


class WorkFailed(HeadwiseError):
    """The call was right, but the work could not be finished (a full disk, a loss that is NaN or infinite)."""

    exit_code = 1
