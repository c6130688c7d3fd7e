"""Checks a corpus before training, in one pass and with about 30 bytes of memory per pair.

held-out text → hashes;   training text → faults per pair, lengths, overlap;   → findings with a severity
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from headwise.config import schema
from headwise.errors import DataError, UsageError
from headwise.text.corpus import LineBatch, PairBatch, read_line_batches, read_pair_batches
from headwise.text.filters import FilterCounts, is_on, line_faults, pair_faults
from headwise.text.findings import EXCERPT, MAX_EXAMPLES, SEVERITIES, Example, Finding, Report, Severity, Side, counted
from headwise.text.misalignment import Lengths, Shift
from headwise.text.overlap import EXACT, NORMALISED, SOURCE_ONLY, HeldOut, normalised
from headwise.text.scripts import count_words, length

# A fault in more than this share of the pairs or lines means that the data is not what was intended.
UNUSABLE_SHARE = 0.5
# A fault in less than this share is only a note.
NOTED_SHARE = 0.01
# Sides whose lengths correlate less are hardly translations of each other: those reach 0.6 and more.
UNRELATED_CORRELATION = 0.25

# Faults of pairs and lines: the message, and the remedy other than the filter of the same name.
FAULTS = {
    "empty": ("have an empty side", "remove them"),
    "max_characters": ("are longer than data.filters.max_characters", "split them"),
    "control": ("have control characters", "clean them: tr -d '\\000-\\010\\013-\\037'"),
    "max_ratio": ("differ in length by more than data.filters.max_ratio", "look for wrong translations"),
    "copies": ("have a target equal to the source", "translate or remove them"),
    "script": ("are mostly in a script that the language does not use", "check the languages and their order"),
    "duplicates": ("repeat an earlier one", "remove them unless the repetition is intended"),
}
# Text that cannot be read. Training would refuse it, so all of these are errors.
READING = {
    "encoding": ("text that is not UTF-8", "convert or fix the file: training stops at such a line"),
    "long-line": ("a line too long to be read", "split it"),
    "damaged": ("a damaged or incomplete compressed file", "download or compress the file again"),
    "empty-file": ("an empty file", "leave it out"),
    "line-counts": ("the two sides have different numbers of lines", "find the line that is missing or split"),
    "format": ("rows or records that cannot be read", "fix them, or set data.fields"),
}

OnProgress = Callable[[int], None]  # called with the number of lines read since the last call


def check_corpus(data: schema.Data, on_progress: OnProgress | None = None) -> Report:
    """Checks the training text, and validation and test sets against it. `data` names files (see `expand_paths`)."""
    return _Check(data, on_progress or (lambda lines: None)).run()


class _Check:
    def __init__(self, data: schema.Data, on_progress: OnProgress) -> None:
        self.data, self.on_progress = data, on_progress
        self.findings: dict[str, Finding] = {}
        self.parallel = not data.text
        if self.parallel == (not data.source):
            raise UsageError("give source and target, or text, not both" if data.text else "there is no text to check")
        self.counts = FilterCounts()
        self.lengths = Lengths()
        files = {"source": data.source, "target": data.target or data.source} if self.parallel else {"text": data.text}
        self.sides = [Side(name, paths) for name, paths in files.items()]

    def run(self) -> Report:
        held_out = [self._hold_out(name, texts) for name, texts in self._held_out_texts()]
        if self.parallel:
            self._check_pairs(held_out)
            self._add_same_file()
            self._add_shift("", self.lengths.find_shift())
            self._add_unrelated(self.lengths.correlation())
        else:
            self._check_lines(held_out)
        for each in held_out:
            self._add_overlap(each)
        self._grade()
        found = sorted(self.findings.values(), key=lambda finding: SEVERITIES.index(finding.severity))
        correlation = self.lengths.correlation() if self.parallel else None
        lines, unit = {each.name: each.lines for each in held_out}, "pairs" if self.parallel else "lines"
        return Report(self.sides, self.counts, found, correlation, lines, unit)

    def _check_pairs(self, held_out: list[HeldOut]) -> None:
        faults = pair_faults(self.data.filters, self.data.languages).items()
        on = {name: is_on(self.data.filters, name) for name, _ in faults}
        for batch in self._pairs(self.data):
            for side, texts in zip(self.sides, (batch.sources, batch.targets), strict=True):
                measure(side, texts)
            self.lengths.add(map(length, batch.sources), map(length, batch.targets))
            for number, (source, target) in enumerate(
                zip(batch.sources, batch.targets, strict=True), start=batch.first
            ):
                reason = None
                for name, fault in faults:
                    if fault(source, target):
                        self._add(name, batch.file, number, f"{source[:EXCERPT]} ||| {target[:EXCERPT]}")
                        reason = reason or (name if on[name] else None)
                        if reason == "empty":
                            break  # its other faults follow from its being empty
                self.counts.add(reason)
            if held_out:
                _match(held_out, batch.sources, batch.targets, batch.file, batch.first)

    def _check_lines(self, held_out: list[HeldOut]) -> None:
        faults = line_faults(self.data.languages).items()
        on = {name: is_on(self.data.filters, name) for name, _ in faults}
        for batch in self._lines(self.data):
            measure(self.sides[0], batch.texts)
            for number, text in enumerate(batch.texts, start=batch.first):
                reason = None
                for name, fault in faults:
                    if fault(text):
                        self._add(name, batch.file, number, text[:EXCERPT])
                        reason = reason or (name if on[name] else None)
                self.counts.add(reason)
            if held_out:
                _match(held_out, batch.texts, [None] * len(batch.texts), batch.file, batch.first)

    def _held_out_texts(self) -> Iterator[tuple[str, schema.Texts]]:
        for name, texts in (("validation", self.data.validation), ("test", self.data.test)):
            if texts.source or texts.target or texts.text:
                yield name, texts

    def _hold_out(self, name: str, texts: schema.Texts) -> HeldOut:
        held_out = HeldOut(name)
        if self.parallel != (not texts.text):
            raise UsageError(f"the {name} set must be of the same kind as the training text: pairs, or plain text")
        if not self.parallel:
            for lines in self._lines(texts):
                for text in lines.texts:
                    held_out.add(text, None)
            return held_out
        lengths = Lengths()
        for pairs in self._pairs(texts):
            lengths.add(map(length, pairs.sources), map(length, pairs.targets))
            for source, target in zip(pairs.sources, pairs.targets, strict=True):
                held_out.add(source, target)
        self._add_shift(name, lengths.find_shift())
        return held_out

    def _pairs(self, texts: schema.Texts) -> Iterator[PairBatch]:
        options = {"format": self.data.format, "fields": self.data.fields}
        for batch in read_pair_batches(texts.source, texts.target, on_bad=self._add_unreadable, **options):  # type: ignore[arg-type]
            yield batch
            self.on_progress(len(batch.sources))

    def _lines(self, texts: schema.Texts) -> Iterator[LineBatch]:
        field = self.data.fields[0] if self.data.fields else None
        for batch in read_line_batches(texts.text, format=self.data.format, field=field, on_bad=self._add_unreadable):
            yield batch
            self.on_progress(len(batch.texts))

    # Findings are collected without a severity; _grade sets it once the totals are known.

    def _add(self, name: str, file: str, line: int | None, text: str) -> None:
        finding = self.findings.get(name)
        if finding is None:
            finding = self.findings[name] = Finding(name, "warning", 0, "", "")
        finding.count += 1
        if len(finding.examples) < MAX_EXAMPLES:
            finding.examples.append(Example(file, line, text))

    def _add_unreadable(self, kind: str, error: DataError) -> None:
        self._add(kind, str(error.file), error.line, error.problem)

    def _add_same_file(self) -> None:
        for source, target in zip(self.data.source, self.data.target, strict=False):
            if source != "-" and target != "-" and Path(source).samefile(target):
                self._put(
                    "same-file",
                    "error",
                    1,
                    "source and target are the same file",
                    "give the file of the other side",
                    [Example(source, None)],
                )

    def _add_shift(self, held_out: str, shift: Shift | None) -> None:
        if shift is None:
            return
        name = f"{held_out}-shift" if held_out else "shift"
        first, last = shift.first + 1, shift.last + 1
        what = f"{held_out} lines" if held_out else "lines"
        fall = (
            f"length correlation {shift.within:.2f} instead of {shift.before:.2f}"
            if first > 1
            else "lengths do not correlate"
        )
        if shift.lag is None:
            message = f"{what} {first} to {last} do not seem to be translations of each other ({fall})"
            self._put(name, "warning", last - first + 1, message, "compare both sides there: lines may be missing")
            return
        message = f"{what} {first} to {last} seem shifted by {counted(abs(shift.lag), 'lines')} ({fall})"
        side = "source" if shift.lag > 0 else "target"
        count = abs(shift.lag)
        remedy = f"near line {first} the {side} lacks {counted(count, 'lines')}, or the other side has {count} too many"
        self._put(name, "error", last - first + 1, message, remedy)

    def _add_unrelated(self, correlation: float | None) -> None:
        # A few hundred pairs are needed to tell, and a shift is the more precise finding.
        too_few = self.counts.lines < 300
        if correlation is None or correlation >= UNRELATED_CORRELATION or too_few or "shift" in self.findings:
            return
        message = f"the lengths of the two sides hardly correlate ({correlation:.2f})"
        self._put("unrelated", "warning", self.counts.lines, message, "check that both files hold the same text")

    def _add_overlap(self, held_out: HeldOut) -> None:
        exact, alike, source_only = (held_out.count(how) for how in (EXACT, NORMALISED, SOURCE_ONLY))
        name = f"{held_out.name}-overlap"
        if exact + alike:
            share = (exact + alike) / held_out.compared
            message = (
                f"{exact + alike:,} of {held_out.compared:,} {held_out.name} lines occur in the training text "
                f"({exact:,} exactly, {alike:,} apart from case, spaces or compatibility forms)"
            )
            examples = [
                Example(file, line, f"{held_out.name} line {number}")
                for number, file, line in held_out.places(NORMALISED, MAX_EXAMPLES)
            ]
            severity: Severity = "error" if share > UNUSABLE_SHARE else "warning"
            self._put(name, severity, exact + alike, message, "remove them from the training text", examples)
        if source_only:
            message = f"{source_only:,} {held_out.name} sources occur in the training text with another translation"
            self._put(f"{held_out.name}-source-overlap", "note", source_only, message, "harmless if there are few")

    def _put(
        self,
        name: str,
        severity: Severity,
        count: int,
        message: str,
        remedy: str,
        examples: list[Example] | None = None,
    ) -> None:
        self.findings[name] = Finding(name, severity, count, message, remedy, examples or [])

    def _grade(self) -> None:
        """Gives a message and a severity to the findings that were only counted so far."""
        total, unit = self.counts.lines, "pairs" if self.parallel else "lines"
        for name, finding in self.findings.items():
            if name in READING:
                message, finding.remedy = READING[name]
                finding.message = f"{finding.count:,} × {message}, first: {finding.examples[0].text}"
                finding.severity = "error"
            elif name in FAULTS:
                message, remedy = FAULTS[name]
                dropped, share = is_on(self.data.filters, name), finding.count / total
                finding.message = counted(finding.count, unit, message, percent(share))
                finding.remedy = "they are dropped" if dropped else f"{remedy}, or drop them: data.filters.{name}"
                finding.severity = "note" if dropped or share < self._noted_share(name) else "warning"
                if share > UNUSABLE_SHARE and self._makes_unusable(name):
                    finding.severity, finding.remedy = "error", remedy
        if total and not self.counts.kept:
            message = f"the filters drop all of the {total:,} {unit}"
            self._put("nothing-left", "error", total, message, "see the other findings for the reasons")

    def _noted_share(self, name: str) -> float:
        # Lines of running text recur naturally.
        return NOTED_SHARE if self.parallel or name != "duplicates" else UNUSABLE_SHARE

    def _makes_unusable(self, name: str) -> bool:
        # A corpus of copies may be intended (a toy task), but not between two languages.
        languages = self.data.languages
        return name in ("empty", "max_ratio", "script") or (name == "copies" and len(set(languages[:2])) == 2)


def percent(share: float) -> str:
    return "<0.1%" if share < 0.001 else f"{share:.1%}"


def measure(side: Side, texts: list[str]) -> None:
    side.lines += len(texts)
    side.characters += sum(map(len, texts))
    side.word_counts.update(map(count_words, texts))


def _match(held_out: list[HeldOut], sources: list[str], targets: list[str] | list[None], file: str, first: int) -> None:
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), start=first):
        key = hash(normalised(source))
        for each in held_out:
            each.match(key, source, target, file, number)
