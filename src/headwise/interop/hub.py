"""Models of the Hugging Face Hub by their names: files are fetched by huggingface_hub, which keeps and resumes them.

Only safetensors, JSON, text and SentencePiece files are fetched, of one commit. HF_ENDPOINT names another server, and
HF_HOME the folder where files are kept.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from headwise.errors import ModelError, UsageError, WorkFailed
from headwise.interop.huggingface.published import INDEX, PICKLES, WEIGHTS

FETCHED = ("*.safetensors", "*.json", "*.txt", "*.spm", "*.model", "README.md")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")


@dataclass(frozen=True)
class Fetched:
    """A model of the Hub on disk."""

    folder: Path
    name: str
    revision: str  # the commit


def is_hub_name(source: str) -> bool:
    """Whether a source can be the name of a model, such as Helsinki-NLP/opus-mt-en-de or gpt2."""
    return _NAME.fullmatch(source) is not None


def fetch(name: str, revision: str | None = None) -> Fetched:
    """Fetches a model; `revision` is a commit, a tag or a branch. What was fetched before is not fetched again."""
    try:
        import huggingface_hub
    except ImportError:
        raise UsageError(
            f"{name} is not a folder here; to take a model of that name from the Hugging Face Hub, install "
            "huggingface_hub: pip install 'headwise[hub]'"
        ) from None
    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        info = huggingface_hub.HfApi(endpoint=endpoint).model_info(name, revision=revision)
        _check_files(name, [file.rfilename for file in info.siblings or []])
        folder = huggingface_hub.snapshot_download(
            name, revision=info.sha, endpoint=endpoint, allow_patterns=list(FETCHED), ignore_patterns=["*/*"]
        )
    except (ModelError, KeyboardInterrupt):
        raise
    except Exception as error:  # of the library, of its HTTP client, or of the disk
        raise _explained(name, revision, error) from error
    return Fetched(Path(folder), name, str(info.sha))


def _check_files(name: str, files: list[str]) -> None:
    """Before anything is fetched: are there weights that can be read?"""
    if WEIGHTS in files or INDEX in files:
        return
    pickles = [file for file in files if any(fnmatch(file, pattern) for pattern in PICKLES)]
    if pickles:
        raise ModelError(
            f"{name} has no {WEIGHTS} but {pickles[0]}, a pickle, which can run code, so it is not fetched; convert "
            "the model elsewhere (transformers: from_pretrained, then save_pretrained) or take a revision that has it"
        )
    raise ModelError(f"{name} has no {WEIGHTS} on the Hub; Headwise cannot import it")


def _explained(name: str, revision: str | None, error: Exception) -> ModelError | WorkFailed:
    from huggingface_hub import errors

    reason = " ".join(str(error).split())[:200] or type(error).__name__
    known: dict[type[Any], str] = {
        errors.GatedRepoError: f"{name} is on the Hub, but one must ask for access to it; log in with `hf auth login`",
        errors.RepositoryNotFoundError: f"{name} is not a folder here, and the Hub has no model of that name",
        errors.RevisionNotFoundError: f"{name} has no revision '{revision}' on the Hub; check --revision",
        errors.HFValidationError: f"{name} is not a folder here, and cannot be the name of a model of the Hub",
    }
    for kind, message in known.items():
        if isinstance(error, kind):
            return ModelError(message)
    return WorkFailed(f"could not fetch {name} from the Hub ({reason}); check the connection and try again: it goes on")
