"""The README.md of an exported directory: what it is, and an example that runs as it stands."""

from __future__ import annotations

from typing import Any

from headwise.bundle.directory import Bundle


def readme(bundle: Bundle, library: str, example: str) -> str:
    """`example` is Python that runs in the directory with `library` installed; empty: there is none."""
    origin: Any = bundle.card.get("origin")
    licence = origin.get("licence") if isinstance(origin, dict) else None
    head = f"---\nlicense: {licence}\n---\n\n" if isinstance(licence, str) and licence.isprintable() else ""
    languages = f", {' to '.join(bundle.languages)}" if bundle.languages else ""
    text = f"{head}# {bundle.family}, {bundle.task_name}{languages}\n\nExported by Headwise; opens with {library}.\n"
    return text + (f"\n```python\n{example.strip()}\n```\n" if example else "")
