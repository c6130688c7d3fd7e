"""Creates an environment for each peer on first use, with a pinned version of its package from PyPI.

Torch, numpy and the like come from the environment of this process through a path file, so all contestants run the same
torch; a constraint keeps pip from installing another one. `python -m benchmarks.environments PEER …` creates some.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import venv
from importlib.metadata import version
from pathlib import Path

DEFAULT = Path.home() / ".cache" / "headwise" / "benchmarks"

PACKAGES = {
    "huggingface": ["transformers==5.22.2"],
    # It requires an older torch, so its dependencies are listed here.
    "opennmt": [
        "--no-deps", "OpenNMT-py==3.5.1", "configargparse", "pyonmttok==1.38.1", "six", "rapidfuzz", "pyahocorasick",
    ],
    "libretranslate": ["flask==3.1.3", "waitress==3.0.2"],
    "joeynmt": ["joeynmt==2.3.0", "sentencepiece==0.2.0", "importlib_metadata"],
    "xtransformers": ["x-transformers==2.31.10"],
    "faster-whisper": ["faster-whisper==1.2.1"],
    "performer": ["performer-pytorch==1.1.4"],
    # It requires torchvision, of which the class that is measured uses nothing.
    "vit-pytorch": ["--no-deps", "vit-pytorch==1.26.11", "einops==0.8.1"],
    "trainer": ["transformers==5.22.2", "accelerate==1.15.0"],
    "sklearn": ["scikit-learn==1.9.1"],
    "fasttext": ["fasttext-numpy2-wheel==0.9.2"],
    # The last version that has Transformer-XL, for tests/parity/test_transformer_xl.py.
    "transfo-xl": ["transformers==4.57.6"],
}  # fmt: skip


class NotInstalledError(Exception):
    """Raised if a peer cannot be installed, with pip's last line of output."""


def environment(folder: Path, peer: str) -> Path:
    """Returns the Python of a peer's environment."""
    home = folder / peer
    python, installed = home / "bin" / "python", home / "packages.txt"
    wanted = "\n".join(PACKAGES[peer]) + "\n"
    if installed.exists() and installed.read_text() == wanted:
        return python
    venv.create(home, with_pip=True)
    site = next((home / "lib").glob("python*/site-packages"))
    found = importlib.util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    (site / "torch_of_the_benchmark.pth").write_text(f"{Path(found.origin).parents[1]}\n")
    constraints = home / "constraints.txt"
    constraints.write_text(f"torch=={version('torch').split('+')[0]}\n")
    command = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(constraints), *PACKAGES[peer]]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise NotInstalledError((run.stderr.strip().splitlines() or ["pip failed"])[-1])
    installed.write_text(wanted)  # written last: an environment without it is created again
    return python


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(environment(DEFAULT, name))
