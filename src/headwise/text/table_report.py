"""Checks a table of texts with labels before training, in one pass over each file: findings with line numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from headwise.config.schema import Filters
from headwise.errors import DataError
from headwise.text.filters import FilterCounts, is_on, row_faults
from headwise.text.findings import EXCERPT, MAX_EXAMPLES, SEVERITIES, Example, Finding, Report, Severity, Side, counted
from headwise.text.overlap import normalised
from headwise.text.report import NOTED_SHARE, READING, UNUSABLE_SHARE, OnProgress, measure, percent
from headwise.text.tables import read_table_batches

FEW_ROWS = 5  # a label with fewer cannot be learned, let alone measured
UNEVEN = 10  # times as many rows as another label has

FAULTS = {
    "empty": ("have an empty text or label", "fill or remove them"),
    "control": ("have control characters", "clean them: tr -d '\\000-\\010\\013-\\037'"),
    "duplicates": ("repeat an earlier row", "remove them unless the repetition is intended"),
}
UNREAD = {
    **READING,
    "format": ("rows or records that cannot be read", "fix them, or set data.columns"),
    "columns": ("columns that the table does not have", "set data.columns to the names in its first row"),
}


def check_table(
    files: Sequence[str],
    columns: Sequence[str],
    held_out: Mapping[str, Sequence[str]],
    *,
    filters: Filters,
    format: str = "auto",
    on_progress: OnProgress | None = None,
) -> Report:
    """Checks the training table and compares held-out tables with it. The last of `columns` is that of the label."""
    check = _Check(tuple(columns), filters, format, on_progress or (lambda rows: None))
    check.training(files)
    for name, paths in held_out.items():
        check.compare(name, paths)
    return check.report(tuple(files))


def check_pairs(
    files: Sequence[str],
    columns: Sequence[str],
    *,
    filters: Filters,
    format: str = "auto",
    on_progress: OnProgress | None = None,
) -> Report:
    """Checks a table of texts and their partners, which has no labels."""
    check = _Check((*columns, ""), filters, format, on_progress or (lambda rows: None))
    check.training(files)
    return check.report(tuple(files))


class _Check:
    def __init__(self, columns: tuple[str, ...], filters: Filters, format: str, on_progress: OnProgress) -> None:
        self.labelled = bool(columns[-1])
        self.columns = columns if self.labelled else columns[:-1]
        self.filters, self.format, self.on_progress = filters, format, on_progress
        self.findings: dict[str, Finding] = {}
        self.counts = FilterCounts()
        self.sides = [Side(name, ()) for name in columns[:-1]]
        self.labels: Counter[str] = Counter()
        self.first: dict[str, Example] = {}  # of each label
        self.seen: dict[int, tuple[str, Example]] = {}  # hash of the normalised texts -> label and place
        self.held_out: dict[str, int] = {}

    def training(self, files: Sequence[str]) -> None:
        faults = row_faults()
        on = {name: is_on(self.filters, name) for name in faults}
        for batch in read_table_batches(files, self.columns, format=self.format, on_bad=self._unreadable):
            for number, side in enumerate(self.sides):
                measure(side, [row[number] for row in batch.rows])
            for line, row in zip(batch.lines, batch.rows, strict=True):
                reason = None
                for name, fault in faults.items():
                    if fault(row):
                        self._add(name, batch.file, line, " ||| ".join(cell[:EXCERPT] for cell in row))
                        reason = reason or (name if on[name] else None)
                        if reason == "empty":
                            break
                self.counts.add(reason)
                if reason is None and self.labelled:
                    self._learn(row, Example(batch.file, line, row[0][:EXCERPT]))
            self.on_progress(len(batch.rows))

    def _learn(self, row: tuple[str, ...], place: Example) -> None:
        *texts, label = row
        self.labels[label] += 1
        self.first.setdefault(label, place)
        before, where = self.seen.setdefault(_key(texts), (label, place))
        if before != label:
            self._add("contradictions", place.file, place.line, f"'{label}' here, '{before}' at {where.place}")

    def compare(self, name: str, files: Sequence[str]) -> None:
        rows = overlap = 0
        examples: list[Example] = []
        unknown: dict[str, Example] = {}
        for batch in read_table_batches(files, self.columns, format=self.format, on_bad=self._unreadable):
            for line, (*texts, label) in zip(batch.lines, batch.rows, strict=True):
                if not all(cell.strip() for cell in (*texts, label)):
                    continue
                rows += 1
                if label not in self.labels:
                    unknown.setdefault(label, Example(batch.file, line, label))
                elif found := self.seen.get(_key(texts)):
                    overlap += 1
                    if len(examples) < MAX_EXAMPLES:
                        examples.append(Example(batch.file, line, f"also at {found[1].place}: {texts[0][:EXCERPT]}"))
            self.on_progress(len(batch.rows))
        self.held_out[name] = rows
        if overlap:
            severity: Severity = "error" if overlap > UNUSABLE_SHARE * rows else "warning"
            message = f"{overlap:,} of {rows:,} {name} texts stand in the training table too"
            self._put(f"{name}-overlap", severity, overlap, message, "remove them from one of the two", examples)
        if unknown:
            message = f"{counted(len(unknown), 'labels')} of the {name} table without a row in the training table"
            self._put(
                f"{name}-labels", "error", len(unknown), message, "add rows with them, or remove these",
                list(unknown.values())[:MAX_EXAMPLES],
            )  # fmt: skip

    def report(self, files: tuple[str, ...]) -> Report:
        for side in self.sides:
            side.files = files
        self._grade()
        if self.counts.kept and self.labelled:
            self._judge_labels()
        found = sorted(self.findings.values(), key=lambda finding: SEVERITIES.index(finding.severity))
        unit = "rows" if self.labelled else "pairs"
        return Report(self.sides, self.counts, found, None, self.held_out, unit, dict(self.labels.most_common()))

    def _judge_labels(self) -> None:
        counts = self.labels.most_common()
        if len(counts) == 1:
            message = f"all rows have the label '{counts[0][0]}'"
            self._put("one-label", "error", counts[0][1], message, "a classifier needs two: check data.columns")
            return
        if len(counts) > 0.5 * self.counts.kept and self.counts.kept > 20:
            message = f"{len(counts):,} different labels in {self.counts.kept:,} rows"
            remedy = "the last of data.columns must be the label: check their order"
            self._put("many-labels", "error", len(counts), message, remedy)
            return
        self._judge_spelling()
        few = [label for label, count in counts if count < FEW_ROWS]
        if few:
            names = ", ".join(f"'{label}'" for label in few[:MAX_EXAMPLES]) + (", …" if len(few) > MAX_EXAMPLES else "")
            message = counted(len(few), "labels", f"have fewer than {FEW_ROWS} rows: {names}")
            places = [self.first[label] for label in few[:MAX_EXAMPLES]]
            self._put("rare-labels", "warning", len(few), message, "add rows, or join them with others", places)
        (most, many), (least, fewest) = counts[0], counts[-1]
        if many >= UNEVEN * fewest:
            message = f"'{most}' has {many:,} rows, '{least}' {fewest:,}"
            remedy = 'set training.class_weights = "balanced" if rare labels matter, and look at macro-F1'
            self._put("balance", "note", many, message, remedy, [self.first[least]])

    def _judge_spelling(self) -> None:
        alike: dict[str, list[str]] = {}
        for label in self.labels:
            alike.setdefault(normalised(label), []).append(label)
        groups = [labels for labels in alike.values() if len(labels) > 1]
        if not groups:
            return
        shown = "; ".join(" = ".join(f"'{label}'" for label in labels) for labels in groups[:MAX_EXAMPLES])
        places = [
            Example(self.first[label].file, self.first[label].line, f"'{label}'")
            for labels in groups[:MAX_EXAMPLES]
            for label in sorted(labels, key=self.labels.__getitem__)
        ]
        self._put(
            "label-spelling", "warning", len(groups),
            counted(len(groups), "labels", f"have spellings that differ only by case or spaces: {shown}"),
            "spell each label in one way", places,
        )  # fmt: skip

    # Findings are collected without a severity; _grade sets it once the totals are known.

    def _unreadable(self, kind: str, error: DataError) -> None:
        self._add(kind, str(error.file), error.line, error.problem)

    def _add(self, name: str, file: str, line: int | None, text: str) -> None:
        finding = self.findings.setdefault(name, Finding(name, "warning", 0, "", ""))
        finding.count += 1
        if len(finding.examples) < MAX_EXAMPLES:
            finding.examples.append(Example(file, line, text))

    def _put(
        self, name: str, severity: Severity, count: int, message: str, remedy: str,
        examples: list[Example] | None = None,
    ) -> None:  # fmt: skip
        self.findings[name] = Finding(name, severity, count, message, remedy, examples or [])

    def _grade(self) -> None:
        total = max(self.counts.lines, 1)
        for name, finding in self.findings.items():
            share = finding.count / total
            if name in UNREAD:
                message, finding.remedy = UNREAD[name]
                finding.message = f"{finding.count:,} × {message}, first: {finding.examples[0].text}"
                finding.severity = "error"
            elif name in FAULTS:
                message, remedy = FAULTS[name]
                dropped = is_on(self.filters, name)
                finding.message = counted(finding.count, "rows", message, percent(share))
                finding.remedy = "they are dropped" if dropped else f"{remedy}, or drop them: data.filters.{name}"
                finding.severity = "note" if dropped or share < NOTED_SHARE else "warning"
                if share > UNUSABLE_SHARE and name == "empty":
                    finding.severity, finding.remedy = "error", remedy
            elif name == "contradictions":
                does = "repeat a text with another label"
                finding.message = counted(finding.count, "rows", does, percent(share))
                finding.remedy = "decide for one label"
                finding.severity = "note" if share < NOTED_SHARE / 10 else "warning"
        if not self.counts.lines and not self.findings:
            self._put("no-rows", "error", 0, "the table has no rows, only names of columns", "add rows")
        if self.counts.lines and not self.counts.kept:
            message = f"the filters drop all of the {self.counts.lines:,} rows"
            self._put("nothing-left", "error", self.counts.lines, message, "see the other findings for the reasons")


def _key(texts: Sequence[str]) -> int:
    return hash(tuple(map(normalised, texts)))
