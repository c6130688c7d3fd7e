"""The check of a corpus before training: one pass, memory of some 30 bytes a pair.

held-out text → hashes;   training text → faults by pair, lengths, overlap;   → findings with a severity
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from headwise.config import schema
from headwise.errors import DataError, UsageError
from headwise.text.corpus import LineBatch, PairBatch, read_line_batches, read_pair_batches
from headwise.text.filters import FilterCounts, is_on, line_faults, pair_faults
from headwise.text.findings import EXCERPT, MAX_EXAMPLES, SEVERITIES, Example, Finding, Report, Severity, Side
from headwise.text.misalignment import Lengths, Shift
from headwise.text.overlap import EXACT, NORMALISED, SOURCE_ONLY, HeldOut, normalised
from headwise.text.scripts import count_words, length

# More than this share of a fault means that the corpus cannot be what was meant.
SPOILED_SHARE = 0.5
# Less than this share of a fault is only noted.
NOTED_SHARE = 0.01
# Translations have a length correlation of 0.6 and more.
UNRELATED = 0.25

# Faults of pairs and lines: what is said, and the remedy beyond the filter of the same name.
FAULTS = {
    "empty": ("have an empty side", "remove them"),
    "max_characters": ("are longer than data.filters.max_characters", "split them"),
    "control": ("have control characters", "clean them: tr -d '\\000-\\010\\013-\\037'"),
    "max_ratio": ("differ in length more than data.filters.max_ratio", "look at the examples: wrong translations?"),
    "copies": ("have a target that equals the source", "translate or remove them"),
    "script": ("are mostly in a script that the language does not use", "check the languages and their order"),
    "duplicates": ("occurred before", "remove repeats if they are not meant"),
}
# Faults of reading. Training would refuse each of them, so all are errors.
READING = {
    "encoding": ("broken encoding", "convert or mend the file: training stops at such a line"),
    "long-line": ("a line too long to be read", "split it"),
    "damaged": ("a damaged or cut packed file", "fetch or pack the file again"),
    "empty-file": ("an empty file", "leave it out"),
    "line-counts": ("the two sides have different numbers of lines", "find the line that is missing or split"),
    "format": ("rows or records that cannot be read", "mend them, or set data.fields"),
}

OnProgress = Callable[[int], None]  # told how many more lines were read


def check_corpus(data: schema.Data, on_progress: OnProgress | None = None) -> Report:
    """Check training text, and validation and test against it. Paths in `data` are files (see `expand_paths`)."""
    return _Check(data, on_progress or (lambda lines: None)).run()


class _Check:
    def __init__(self, data: schema.Data, on_progress: OnProgress) -> None:
        self.data, self.on_progress = data, on_progress
        self.findings: dict[str, Finding] = {}
        self.parallel = not data.text
        if self.parallel == (not data.source):
            raise UsageError("name either source and target, or text" if data.text else "there is no text to check")
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
        return Report(self.sides, self.counts, found, correlation, {each.name: each.lines for each in held_out})

    def _check_pairs(self, held_out: list[HeldOut]) -> None:
        faults = pair_faults(self.data.filters, self.data.languages).items()
        on = {name: is_on(self.data.filters, name) for name, _ in faults}
        for batch in self._pairs(self.data):
            for side, texts in zip(self.sides, (batch.sources, batch.targets), strict=True):
                _measure(side, texts)
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
                            break  # what else would be said of it follows from its emptiness
                self.counts.add(reason)
            if held_out:
                _meet(held_out, batch.sources, batch.targets, batch.file, batch.first)

    def _check_lines(self, held_out: list[HeldOut]) -> None:
        faults = line_faults(self.data.languages).items()
        on = {name: is_on(self.data.filters, name) for name, _ in faults}
        for batch in self._lines(self.data):
            _measure(self.sides[0], batch.texts)
            for number, text in enumerate(batch.texts, start=batch.first):
                reason = None
                for name, fault in faults:
                    if fault(text):
                        self._add(name, batch.file, number, text[:EXCERPT])
                        reason = reason or (name if on[name] else None)
                self.counts.add(reason)
            if held_out:
                _meet(held_out, batch.texts, [None] * len(batch.texts), batch.file, batch.first)

    def _held_out_texts(self) -> Iterator[tuple[str, schema.Texts]]:
        for name, texts in (("validation", self.data.validation), ("test", self.data.test)):
            if texts.source or texts.target or texts.text:
                yield name, texts

    def _hold_out(self, name: str, texts: schema.Texts) -> HeldOut:
        held_out = HeldOut(name)
        if self.parallel != (not texts.text):
            raise UsageError(f"the {name} set must be of the training text's kind: pairs, or one text")
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
        for batch in read_pair_batches(texts.source, texts.target, on_bad=self._tell, **options):  # type: ignore[arg-type]
            yield batch
            self.on_progress(len(batch.sources))

    def _lines(self, texts: schema.Texts) -> Iterator[LineBatch]:
        field = self.data.fields[0] if self.data.fields else None
        for batch in read_line_batches(texts.text, format=self.data.format, field=field, on_bad=self._tell):
            yield batch
            self.on_progress(len(batch.texts))

    # Findings are gathered without a verdict; _grade gives it when the totals are known.

    def _add(self, name: str, file: str, line: int | None, text: str) -> None:
        finding = self.findings.get(name)
        if finding is None:
            finding = self.findings[name] = Finding(name, "warning", 0, "", "")
        finding.count += 1
        if len(finding.examples) < MAX_EXAMPLES:
            finding.examples.append(Example(file, line, text))

    def _tell(self, kind: str, error: DataError) -> None:
        self._add(kind, str(error.file), error.line, error.problem)

    def _add_same_file(self) -> None:
        for source, target in zip(self.data.source, self.data.target, strict=False):
            if source != "-" and target != "-" and Path(source).samefile(target):
                self._put(
                    "same-file",
                    "error",
                    1,
                    "source and target are the same file",
                    "name the other side",
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
            else "lengths do not fit"
        )
        if shift.lag is None:
            message = f"{what} {first} to {last} seem not to belong together ({fall})"
            self._put(name, "warning", last - first + 1, message, "look at both sides there: lines may be missing")
            return
        message = f"{what} {first} to {last} seem shifted by {abs(shift.lag)} ({fall})"
        side = "source" if shift.lag > 0 else "target"
        remedy = f"about line {first} the {side} lacks {abs(shift.lag)} line(s), or the other side has a line too many"
        self._put(name, "error", last - first + 1, message, remedy)

    def _add_unrelated(self, correlation: float | None) -> None:
        # A shift says the same more exactly; some hundred pairs are needed to tell.
        if correlation is None or correlation >= UNRELATED or self.counts.lines < 300 or "shift" in self.findings:
            return
        message = f"the lengths of the two sides hardly belong together (correlation {correlation:.2f})"
        self._put("unrelated", "warning", self.counts.lines, message, "check that both files are of the same text")

    def _add_overlap(self, held_out: HeldOut) -> None:
        exact, alike, source_only = (held_out.count(how) for how in (EXACT, NORMALISED, SOURCE_ONLY))
        name = f"{held_out.name}-overlap"
        if exact + alike:
            share = (exact + alike) / held_out.compared
            message = (
                f"{exact + alike:,} of {held_out.compared:,} {held_out.name} lines stand in the training text "
                f"({exact:,} exactly, {alike:,} but for case, spaces or compatibility forms)"
            )
            examples = [
                Example(file, line, f"{held_out.name} line {number}")
                for number, file, line in held_out.places(NORMALISED, MAX_EXAMPLES)
            ]
            severity: Severity = "error" if share > SPOILED_SHARE else "warning"
            self._put(name, severity, exact + alike, message, "remove them from the training text", examples)
        if source_only:
            message = f"{source_only:,} {held_out.name} sources stand in the training text with another translation"
            self._put(f"{held_out.name}-source-overlap", "note", source_only, message, "no harm if they are few")

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
        """Words and a severity for what was only counted so far."""
        total, unit = self.counts.lines, "pairs" if self.parallel else "lines"
        for name, finding in self.findings.items():
            if name in READING:
                message, finding.remedy = READING[name]
                finding.message = f"{finding.count:,} × {message}, first: {finding.examples[0].text}"
                finding.severity = "error"
            elif name in FAULTS:
                message, remedy = FAULTS[name]
                dropped, share = is_on(self.data.filters, name), finding.count / total
                finding.message = f"{finding.count:,} {unit} ({_percent(share)}) {message}"
                finding.remedy = "they are dropped" if dropped else f"{remedy}, or drop them: data.filters.{name}"
                finding.severity = "note" if dropped or share < self._noted_share(name) else "warning"
                if share > SPOILED_SHARE and self._spoils(name):
                    finding.severity, finding.remedy = "error", remedy
        if total and not self.counts.kept:
            self._put(
                "nothing-left", "error", total, f"none of {total:,} {unit} is left after the filters", "see the reasons"
            )

    def _noted_share(self, name: str) -> float:
        # Lines of a running text recur by nature.
        return NOTED_SHARE if self.parallel or name != "duplicates" else SPOILED_SHARE

    def _spoils(self, name: str) -> bool:
        # A corpus of copies can be meant (a toy task), but not between two languages.
        languages = self.data.languages
        return name in ("empty", "max_ratio", "script") or (name == "copies" and len(set(languages[:2])) == 2)


def _percent(share: float) -> str:
    return "<0.1%" if share < 0.001 else f"{share:.1%}"


def _measure(side: Side, texts: list[str]) -> None:
    side.lines += len(texts)
    side.characters += sum(map(len, texts))
    side.word_counts.update(map(count_words, texts))


def _meet(held_out: list[HeldOut], sources: list[str], targets: list[str] | list[None], file: str, first: int) -> None:
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), start=first):
        key = hash(normalised(source))
        for each in held_out:
            each.meet(key, source, target, file, number)
