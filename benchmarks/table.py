"""The tables of docs/benchmarks.md and of both READMEs, from results that are there; nothing is run.

A page has a place for them between `<!-- table -->` and `<!-- /table -->`; what stands there is replaced.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
START, END = "<!-- table -->", "<!-- /table -->"
# The order of the page; a result that is not named here comes after these.
ORDER = (
    "time_to_quality", "training-tiny", "training-base", "language_model", "translation", "generation", "serving",
    "startup", "scaling", "data", "kernels",
)  # fmt: skip
HEADS = {
    "en": ("", "Headwise", "best peer", "ratio (lowest to highest)"),
    "zh": ("", "Headwise", "最好的同类工具", "倍数(最低到最高)"),
}
NOTHING = {
    "en": "Nothing has been measured yet: run `make bench`.",
    "zh": "还没有测量:运行 `make bench`。",
}
Found = dict[str, Any]


def arranged(results: Sequence[Found]) -> list[Found]:
    places = {name: place for place, name in enumerate(ORDER)}
    return sorted(results, key=lambda found: (places.get(found["benchmark"], len(ORDER)), found["benchmark"]))


# ---- the page


def page(results: Sequence[Found]) -> str:
    """Every result: a heading, on what and when it was measured, a table with all peers, and who was left out."""
    if not results:
        return NOTHING["en"]
    return "\n\n".join(_section(found) for found in arranged(results))


def _section(found: Found) -> str:
    machine = found["machine"]
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    lines = [
        f"## {found['title']}",
        "",
        f"{found['date']}; {machine['cpu']}, {machine['cores']} cores, {machine['threads']} threads, matmul peak "
        f"{machine['matmul_gflops']:g} GF/s (fp32); {versions}.",
    ]
    settings = _settings(found["settings"])
    lines += [f"Settings: {settings}."] if settings else []
    lines += ["", "| | Headwise | peers | ratio | lowest to highest | rounds |", "|---|---|---|---|---|---|"]
    lines += [_full_row(row) for row in found["rows"]]
    lines += [""] * bool(found["left_out"])
    lines += [f"- {peer}: {reason}" for peer, reason in found["left_out"].items()]
    return "\n".join(lines)


def _settings(settings: Found) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items() if not isinstance(value, (dict, list)))


def _full_row(row: Found) -> str:
    best = row["best_peer"]
    peers = [
        f"{name} **{number(value)}**" if name == best else f"{name} {number(value)}" for name, value in _ranked(row)
    ]
    spread = "–" if row["spread"] is None else f"{row['spread'][0]:.2f} to {row['spread'][1]:.2f}"
    what = f"{row['what']}, {row['unit']}" + (f" ({row['note']})" if row["note"] else "")
    return f"| {what} | {number(row['ours'])} | {', '.join(peers) or '–'} | {ratio(row)} | {spread} | {row['rounds']} |"


def _ranked(row: Found) -> list[tuple[str, float]]:
    return sorted(row["peers"].items(), key=lambda pair: pair[1], reverse=row["better"] == "higher")


def ratio(row: Found) -> str:
    """Above 1 Headwise is better. A loss is said in words as well, so that nobody reads over it."""
    if row["ratio"] is None:
        return "–"
    value = row["ratio"]
    return f"{value:.2f}" if value >= 1 else f"{value:.2f} (behind)"


def number(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# ---- the READMEs


def short(results: Sequence[Found], language: str = "en") -> str:
    """The rows that a result calls its headlines, the best peer only."""
    rows = [(found, row) for found in arranged(results) for row in found["rows"] if row["headline"]]
    if not rows:
        return NOTHING[language]
    head = HEADS[language]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for found, row in rows:
        best = row["best_peer"]
        peer = "–" if best is None else f"{number(row['peers'][best])} ({best})"
        spread = (
            "" if row["spread"] is None or row["rounds"] == 1 else f" ({row['spread'][0]:.2f}–{row['spread'][1]:.2f})"
        )
        told = ratio(row) if language == "en" else ratio(row).replace("(behind)", "(落后)")
        what = f"{found['title']}: {row['what']}, {row['unit']}"
        lines.append(f"| {what} | {number(row['ours'])} | {peer} | {told}{spread} |")
    return "\n".join([*lines, "", _made_on(results, language)])


def _made_on(results: Sequence[Found], language: str) -> str:
    threads = defaultdict(set)
    for result in results:
        threads[result["machine"]["cpu"]].add(result["machine"]["threads"])
    machines = [f"{cpu}, {' or '.join(map(str, sorted(counts)))} threads" for cpu, counts in threads.items()]
    peaks = [r["machine"]["matmul_gflops"] for r in results]
    versions = results[0]["machine"]["versions"]
    place, peak = "; ".join(machines), " to ".join(f"{value:g}" for value in sorted({min(peaks), max(peaks)})) + " GF/s"
    if language == "zh":
        return f"*{place};矩阵乘法峰值 {peak};torch {versions.get('torch')}。大于 1 表示 Headwise 更好。*"
    return f"*{place}; matmul peak {peak}; torch {versions.get('torch')}. Above 1 Headwise is better.*"


# ---- into the files


def fill(file: Path, text: str) -> bool:
    """Puts the text between the markers; a page that has none stays as it is, and False is given."""
    page_text = file.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(START) + r".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(page_text):
        return False
    new = pattern.sub(lambda _: f"{START}\n\n{text}\n\n{END}", page_text, count=1)
    if new != page_text:
        file.write_text(new, encoding="utf-8")
    return True


def write_tables(results: Sequence[Found], root: Path = ROOT) -> list[str]:
    """Fills all three pages; gives the names of those that have no place for a table."""
    texts = {
        "docs/benchmarks.md": page(results),
        "README.md": short(results),
        "README.zh-CN.md": short(results, "zh"),
    }
    return [name for name, text in texts.items() if not fill(root / name, text)]
