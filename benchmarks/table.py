"""Writes the tables of docs/benchmarks.md and of both READMEs from the stored results; runs no benchmark.

A page marks the place with `<!-- table -->` and `<!-- /table -->`; what is between the marks is replaced. The page has
every row; a README has the rows of `PICKS`, chosen by what a user cares about and not by their outcome.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
START, END = "<!-- table -->", "<!-- /table -->"
# The order of the page; results that are not named here come last.
ORDER = (
    "first_try", "time_to_quality", "training-tiny", "training-base", "training-rnn", "language_model", "images",
    "images-quality", "classification", "classification-speed", "long", "translation", "transcription", "generation",
    "serving", "serving_tasks", "startup", "importing", "scaling", "data", "kernels",
)  # fmt: skip
NOTHING = {
    "en": "Nothing has been measured yet: run `make bench`.",
    "zh": "还没有测量：请运行 `make bench`。",
}
Found = dict[str, Any]


def arranged(results: Sequence[Found]) -> list[Found]:
    places = {name: place for place, name in enumerate(ORDER)}
    return sorted(results, key=lambda found: (places.get(found["benchmark"], len(ORDER)), found["benchmark"]))


# ---- the page


def page(results: Sequence[Found]) -> str:
    """Renders every result: a heading, machine and date, a table with all peers, and the peers that were left out."""
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
    """Renders the ratio; above 1 Headwise is better. A ratio below 1 is also marked in words, to be noticed."""
    if row["ratio"] is None:
        return "–"
    value = row["ratio"]
    return f"{value:.2f}" if value >= 1 else f"{value:.2f} (behind)"


def number(value: float) -> str:
    """Renders three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# ---- the READMEs


@dataclass(frozen=True)
class Pick:
    """A row of the READMEs: where it is found, and what it is called and qualified by in English and Chinese."""

    benchmark: str
    what: str  # how the row's name begins
    unit: str  # of several matching rows the last is taken
    name: tuple[str, str]
    caveat: tuple[str, str]


PICKS = (
    Pick(
        "time_to_quality",
        "time to the BLEU",
        "minutes",
        (
            "minutes of training until the best BLEU of the peer's 28 minutes",
            "训练到同类工具 28 分钟内最高 BLEU 所需的分钟数",
        ),
        (
            "ours has cosine decay and averaged weights, theirs does not; one run each",
            "我们用了余弦衰减和权重平均，对方没有；各训练一次",
        ),
    ),
    Pick(
        "training-tiny",
        "all peers",
        "target tokens/s",
        ("training `tiny`, target tokens per second", "训练 `tiny`，每秒目标词元数"),
        ("Multi30k; the peer makes its own batches", "Multi30k；对方自行组批"),
    ),
    Pick(
        "training-base",
        "all peers",
        "target tokens/s",
        ("training the paper's `base`, target tokens per second", "训练论文的 `base`，每秒目标词元数"),
        ("peers with fewer dropouts count too", "dropout 较少的工具也参加比较"),
    ),
    Pick(
        "language_model",
        "writing, one text, sampled",
        "tokens/s",
        ("generating one text by sampling, tokens per second", "采样生成一段文本，每秒词元数"),
        ("a small model: 4 layers, width 256", "小模型：4 层，宽 256"),
    ),
    Pick(
        "serving",
        "requests, 16 clients",
        "requests/s",
        ("serving 16 clients, requests per second", "服务 16 个客户端，每秒请求数"),
        (
            "the peer is a rebuilt server with the same model and one worker per core",
            "对方是仿照其做法重建的服务器，模型相同，每核一个工作线程",
        ),
    ),
    Pick(
        "startup",
        "from the command to a translation",
        "s",
        ("from the command to a translation, seconds", "从输入命令到得到译文，秒"),
        ("ours does not import torch, the peer does", "我们不导入 torch，对方要导入"),
    ),
    Pick(
        "translation",
        "torch engine, beam 5 batch 64",
        "sentences/s",
        ("translating, torch engine, beam 5, sentences per second", "翻译，torch 引擎，束宽 5，每秒句数"),
        ("the same weights in every tool; batches of 64", "各工具权重相同；每批 64 句"),
    ),
    Pick(
        "translation",
        "fast engine int8, beam 5 batch 64",
        "sentences/s",
        ("translating, fast engine (int8), beam 5, sentences per second", "翻译，快速引擎（int8），束宽 5，每秒句数"),
        (
            "the peer starts from ready tokens, ours from text",
            "对方直接使用切好的词元，我们从文本开始",
        ),
    ),
    Pick(
        "classification-speed",
        "fine-tuning MiniLM, Trainer by length",
        "rows/s",
        ("fine-tuning MiniLM (BERT) to classify, rows per second", "微调 MiniLM（BERT）做分类，每秒行数"),
        ("both make batches by length; as it comes, the peer is half as fast", "双方都按长度组批；对方默认设置慢一半"),
    ),
    Pick(
        "images",
        "training, beside Hugging Face ViT",
        "pictures/s",
        ("training a ViT, pictures per second", "训练 ViT，每秒图片数"),
        ("Fashion-MNIST, the same sizes", "Fashion-MNIST，网络大小相同"),
    ),
    Pick(
        "long",
        "Longformer (window 128), forward and backward, 4,096",
        "ms",
        ("training on texts of 4,096 tokens, Longformer, milliseconds", "训练 4,096 个词元的文本，Longformer，毫秒"),
        ("forward and backward, four texts; the same sizes", "前向和反向，四个文本；网络大小相同"),
    ),
    Pick(
        "transcription",
        "tiny.en int8, beam 5, against faster-whisper",
        "s of sound/s",
        (
            "transcribing, Whisper tiny.en (int8), beam 5, seconds of sound per second",
            "语音转写，Whisper tiny.en（int8），束宽 5，每秒处理的录音秒数",
        ),
        ("the same weights", "权重相同"),
    ),
)
LANGUAGES = ("en", "zh")
HEADS = {
    "en": ("", "Headwise", "best peer", "ratio (lowest–highest)", "note"),
    "zh": ("", "Headwise", "最好的同类工具", "倍数（最低–最高）", "说明"),
}
PEERS = {  # what a README calls a peer whose name in the results is long
    "LibreTranslate's way, one worker per core": ("LibreTranslate's way", "LibreTranslate 的做法"),
    "torch.nn.Transformer, own batches": ("torch.nn.Transformer", "torch.nn.Transformer"),
    "Hugging Face MarianMT, fewer dropouts": ("MarianMT, fewer dropouts", "MarianMT，dropout 较少"),
    "CTranslate2 alone, int8": ("CTranslate2 alone", "单用 CTranslate2"),
}


def short(results: Sequence[Found], language: str = "en") -> str:
    """The rows of `PICKS`, each against the best peer; one table per machine, with the machine below it."""
    chosen = [(pick, *found) for pick in PICKS if (found := find(results, pick))]
    if not chosen:
        return NOTHING[language]
    processors = list(dict.fromkeys(found["machine"]["cpu"] for _, found, _ in chosen))
    tables = []
    for processor in processors:
        here = [one for one in chosen if one[1]["machine"]["cpu"] == processor]
        head = HEADS[language]
        lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        lines += [_short_row(pick, row, language) for pick, _, row in here]
        tables.append("\n".join([*lines, "", _made_on([found for _, found, _ in here], language)]))
    return "\n\n".join(tables)


def find(results: Sequence[Found], pick: Pick) -> tuple[Found, Found] | None:
    """The result and the row that a pick names, or None if that has not been measured."""
    found = [(one, row) for one in results if one["benchmark"] == pick.benchmark for row in one["rows"]]
    matching = [(one, row) for one, row in found if row["what"].startswith(pick.what) and row["unit"] == pick.unit]
    return matching[-1] if matching else None


def _short_row(pick: Pick, row: Found, language: str) -> str:
    column, best, peer = LANGUAGES.index(language), row["best_peer"], "–"
    opening, closing = ("（", "）") if language == "zh" else (" (", ")")
    if best is not None:
        name = PEERS.get(best, (best, best))[column]
        peer = f"{number(row['peers'][best])}{opening}{name}{closing}"
    told = ratio(row).replace(" (behind)", "，落后" if language == "zh" else ", behind")
    if row["spread"] is not None and row["rounds"] > 1:
        told += f"{opening}{row['spread'][0]:.2f}–{row['spread'][1]:.2f}{closing}"
    return f"| {pick.name[column]} | {number(row['ours'])} | {peer} | {told} | {pick.caveat[column]} |"


def _made_on(results: Sequence[Found], language: str) -> str:
    machine = results[0]["machine"]
    dates = sorted({found["date"] for found in results})
    peaks = sorted({found["machine"]["matmul_gflops"] for found in results})
    peak = "–".join(dict.fromkeys((f"{peaks[0]:g}", f"{peaks[-1]:g}")))
    day, torch = "–".join(dict.fromkeys((dates[0], dates[-1]))), machine["versions"].get("torch")
    if language == "zh":
        return (
            f"*{machine['cpu']}，{machine['cores']} 核；矩阵乘法峰值 {peak} GF/s；torch {torch}；{day}。"
            "大于 1 表示 Headwise 更好。*"
        )
    return (
        f"*{machine['cpu']}, {machine['cores']} cores; matmul peak {peak} GF/s; torch {torch}; {day}. "
        "Above 1 Headwise is better.*"
    )


# ---- into the files


def fill(file: Path, text: str) -> bool:
    """Puts the text between the marks; returns False and changes nothing if the page has no marks."""
    page_text = file.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(START) + r".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(page_text):
        return False
    new = pattern.sub(lambda _: f"{START}\n\n{text}\n\n{END}", page_text, count=1)
    if new != page_text:
        file.write_text(new, encoding="utf-8")
    return True


def write_tables(results: Sequence[Found], root: Path = ROOT) -> list[str]:
    """Fills all three pages; returns the names of those without marks."""
    texts = {
        "docs/benchmarks.md": page(results),
        "README.md": short(results),
        "README.zh-CN.md": short(results, "zh"),
    }
    return [name for name, text in texts.items() if not fill(root / name, text)]
