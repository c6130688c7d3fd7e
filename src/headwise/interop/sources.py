"""What `headwise import` is given, told apart by the files that are there."""

from __future__ import annotations

import zipfile
from fnmatch import fnmatch
from pathlib import Path

from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.published import PICKLES
from headwise.interop.imported import Imported

_ARGOS = "model"  # the folder of a package of Argos that is a CTranslate2 directory


def read_model(source: Path) -> Imported:
    """Reads a directory in the layout of the Hub, of CTranslate2, of a package of Argos, or of Marian."""
    if source.is_file():
        raise UsageError(_about_file(source))
    if not source.is_dir():
        raise ModelError(f"{source} is not there; give a directory of a published model")
    from headwise.interop.ctranslate2 import directory as ctranslate2

    for folder in (source, source / _ARGOS):
        if ctranslate2.is_directory(folder):
            from headwise.interop.ctranslate2.read import read_model as read_ctranslate2

            return read_ctranslate2(folder)
    if any(source.glob("*.npz")):
        from headwise.interop.marian.read import read_model as read_marian

        return read_marian(source)
    from headwise.interop.huggingface.read import read_model as read_huggingface

    return read_huggingface(source)


def _about_file(file: Path) -> str:
    if any(fnmatch(file.name, pattern) for pattern in PICKLES):
        return f"{file} is a pickle, which can run code, so it is not opened; convert it to safetensors elsewhere"
    if zipfile.is_zipfile(file):
        return f"{file} is an archive; unpack it and give the folder: unzip {file.name} -d FOLDER"
    return f"{file} is a file; give the folder that it is in"
