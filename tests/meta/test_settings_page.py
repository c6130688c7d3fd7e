"""The reference of settings is the declarations' own, with every setting and preset."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from headwise.config.families import find_family
from headwise.config.schema import Training

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_its_script_writes() -> None:
    spec = importlib.util.spec_from_file_location("make_settings", DOCS / "make_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    assert text == module.page(), "docs/settings.md is outdated: run python docs/make_settings.py"
    family = find_family("transformer")
    assert family is not None
    for name in (*Training.model_fields, *family.presets, *family.settings.model_fields):
        assert f"`{name}`" in text
