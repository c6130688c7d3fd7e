"""Writes docs/settings.md, the reference of all settings of a recipe, from their declarations."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headwise.config.families import family_names, find_family
from headwise.config.schema import Recipe

PAGE = Path(__file__).with_name("settings.md")
HEAD = """# Settings

Every setting of a recipe, with its default. A recipe names what it changes; what it leaves out is chosen by the size of the data and the speed of the machine
where `headwise train` says so, and else has the default below. This page is written by `docs/make_settings.py`.

Chosen are an end and a validation part, preset, norm and dropout, the size of the vocabulary, and the optimisation: optimizer, schedule, learning rate, warm-up,
batch size and how often to validate, save and log. A single setting of these replaces only itself. A recipe that names `training.schedule`, or a
`learning_rate` of 0.1 or more, which is the factor of the paper's schedule, decides about the optimisation itself; the defaults below are the paper's.
"""


def page() -> str:
    parts = [HEAD]
    for name, field in Recipe.model_fields.items():
        section = field.annotation
        if name != "model" and isinstance(section, type) and issubclass(section, BaseModel):
            parts.append(_section(name, section))
    parts.append("## [model]\n\n`family`, `preset` and `from` (fine-tuning), and the settings of the family:\n")
    for name in family_names():
        family = find_family(name)
        if family is None or not family.network.startswith("headwise.models."):  # one that a test has registered
            continue
        parts.append(f"### {name}\n\n{family.about}\n\n{_table(family.settings)}\n")
        if family.presets:
            rows = [
                f"| `{preset}` | {', '.join(f'`{key} = {_toml(value)}`' for key, value in own.items()) or 'the defaults'} |"
                for preset, own in family.presets.items()
            ]
            parts.append("\n".join(["| preset | changes |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _section(name: str, section: type[BaseModel]) -> str:
    inner = {key: field.annotation for key, field in section.model_fields.items()}
    nested = {key: kind for key, kind in inner.items() if isinstance(kind, type) and issubclass(kind, BaseModel)}
    tables = [f"## [{name}]\n\n{_table(section, without=set(nested))}\n"]
    tables += [f"### [{name}.{key}]\n\n{_table(kind)}\n" for key, kind in nested.items()]
    repeated = {key: get_args(kind)[0] for key, kind in inner.items() if get_origin(kind) is tuple}
    for key, kind in repeated.items():
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            shared = set(section.model_fields) & set(kind.model_fields)
            same = ", ".join(f"`{field}`" for field in kind.model_fields if field in shared)
            tables.append(f"### [[{name}.{key}]]\n\n{_table(kind, without=shared)}\n\nand, as above: {same}.\n")
    return "\n".join(tables)


def _table(section: type[BaseModel], without: frozenset[str] | set[str] = frozenset()) -> str:
    rows = [
        f"| `{field.alias or name}` | {_default(field)} | {_choices(field)}{_cell(field.description or '')} |"
        for name, field in section.model_fields.items()
        if name not in without
    ]
    return "\n".join(["| setting | default | |", "|---|---|---|", *rows])


def _default(field: FieldInfo) -> str:
    value = field.default
    return "–" if value is None or value == () else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _choices(field: FieldInfo) -> str:
    kinds = [field.annotation, *(get_args(field.annotation) if _is_union(field.annotation) else ())]
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    return f"{', '.join(f'`{word}`' for word in words)}: " if words else ""


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
