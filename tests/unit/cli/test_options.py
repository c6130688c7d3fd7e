from __future__ import annotations

import importlib
from typing import get_type_hints

import pytest

from headwise.cli import options


@pytest.mark.parametrize("name", ["Model", "Engine", "Precision"])
@pytest.mark.parametrize("command", ["classify", "embed", "fill", "translate"])
def test_an_option_of_several_commands_reads_alike(command: str, name: str) -> None:
    called = getattr(importlib.import_module(f"headwise.cli.{command}"), command)
    assert get_type_hints(called, include_extras=True)[name.lower()] == getattr(options, name)


@pytest.mark.parametrize(
    ("command", "option", "words"),
    [
        ("evaluate", "columns", "those of the training"),
        ("evaluate", "table", "or pairs"),
        ("evaluate", "text", "to fill gaps in"),
        ("evaluate", "stride", "for a model that fills gaps"),
        ("evaluate", "engine", "classifiers"),
        ("look", "target", "or label"),
    ],
)
def test_help_speaks_of_every_task_that_has_the_option(command: str, option: str, words: str) -> None:
    called = getattr(importlib.import_module(f"headwise.cli.{command}"), command)
    assert words in get_type_hints(called, include_extras=True)[option].__metadata__[0].help


@pytest.mark.parametrize("command", ["check", "init", "train"])
def test_the_columns_of_a_table_are_named_alike(command: str) -> None:
    called = getattr(importlib.import_module(f"headwise.cli.{command}"), command)
    assert get_type_hints(called, include_extras=True)["columns"] == options.Columns
