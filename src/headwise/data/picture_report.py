"""Checks labelled pictures before training, in one pass over each part: findings with their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from PIL import Image

from headwise.image.preprocessing import Preprocessing
from headwise.image.reading import BadPicture, Pixels, as_pixels
from headwise.image.sources import Source
from headwise.text.filters import FilterCounts
from headwise.text.findings import MAX_EXAMPLES, SEVERITIES, Example, Finding, Report, Severity

OnProgress = Callable[[int], None]  # called with the number of pictures read since the last call
FEW_PICTURES = 5  # a class with fewer cannot be learned, let alone measured
UNEVEN = 10  # times as many pictures as another class has
UNUSABLE_SHARE = 0.3  # of pictures that cannot be read, or that are held out and trained on too
_SMALL = Preprocessing(size=32, fit="stretch", mean=[0.5] * 3, std=[0.5] * 3)  # what copies are recognised by


@dataclass(frozen=True)
class PictureReport:
    """The report, and what settings are chosen by."""

    report: Report
    side: int  # the median of the shorter sides, in pixels
    grey: bool  # no picture has colours


def check_pictures(
    training: Source, held_out: Mapping[str, Source], on_progress: OnProgress | None = None
) -> PictureReport:
    """Reads all pictures; `held_out` are those of validation and test."""
    check = _Check(on_progress or (lambda count: None))
    check.learn(training)
    for name, source in held_out.items():
        check.compare(name, source)
    return PictureReport(check.report(), int(np.median(check.sides)) if check.sides else 0, check.grey)


@dataclass
class _Check:
    on_progress: OnProgress
    counts: FilterCounts = field(default_factory=FilterCounts)
    labels: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    held_out: dict[str, int] = field(default_factory=dict)
    sides: list[int] = field(default_factory=list)
    grey: bool = True
    seen: dict[bytes, tuple[str, Example]] = field(default_factory=dict)  # by their pixels: label and place

    def learn(self, source: Source) -> None:
        for picture in source.pictures(_small):
            self.on_progress(1)
            place = Example(picture.file, picture.line)
            if isinstance(picture.pixels, BadPicture):
                self.counts.add(picture.pixels.reason)
                self._example("unreadable", Example(str(picture.pixels.file), None, picture.pixels.problem))
                continue
            self.counts.add(None)
            self.labels[picture.label] += 1
            self.sides.append(min(picture.size))
            self.grey &= picture.grey
            before, where = self.seen.setdefault(_digest(picture.pixels), (picture.label, place))
            if before != picture.label:
                text = f"'{picture.label}' here, '{before}' at {where.place}"
                self._example("contradictions", Example(picture.file, picture.line, text))
        self._judge_classes(source)
        self._grade()

    def compare(self, name: str, source: Source) -> None:
        total = overlap = 0
        unknown: dict[str, Example] = {}
        for picture in source.pictures(_small):
            self.on_progress(1)
            if isinstance(picture.pixels, BadPicture):
                self._example(f"{name}-unreadable", Example(picture.file, picture.line, picture.pixels.problem))
                continue
            total += 1
            place = Example(picture.file, picture.line, picture.label)
            if picture.label not in self.labels:
                unknown.setdefault(picture.label, place)
            elif found := self.seen.get(_digest(picture.pixels)):
                overlap += 1
                self._example(f"{name}-overlap", Example(place.file, place.line, f"also at {found[1].place}"))
        self.held_out[name] = total
        if overlap:
            severity: Severity = "error" if overlap > UNUSABLE_SHARE * total else "warning"
            message = f"{overlap:,} of {total:,} {name} pictures are among the training pictures too"
            self._put(f"{name}-overlap", severity, overlap, message, "remove them from one of the two")
        if f"{name}-unreadable" in self.findings:
            count = self.findings[f"{name}-unreadable"].count
            message = f"{count:,} {name} pictures cannot be read"
            self._put(f"{name}-unreadable", "warning", count, message, "they are left out: repair or remove them")
        if unknown:
            message = f"{len(unknown):,} classes of the {name} pictures do not occur in training"
            self._put(f"{name}-classes", "error", len(unknown), message, "add pictures of them, or remove these")
            self.findings[f"{name}-classes"].examples = list(unknown.values())[:MAX_EXAMPLES]

    def report(self) -> Report:
        found = sorted(self.findings.values(), key=lambda finding: SEVERITIES.index(finding.severity))
        labels = dict(self.labels.most_common())
        return Report([], self.counts, found, None, self.held_out, "pictures", labels)

    def _judge_classes(self, source: Source) -> None:
        for file in source.empty_classes:
            self._example("empty-classes", Example(file, None))
        if source.ignored:
            message = f"{len(source.ignored):,} files are not pictures by their names"
            examples = [Example(file, None) for file in source.ignored[:MAX_EXAMPLES]]
            self._put("ignored", "note", len(source.ignored), message, "they are not read", examples)
        if len(self.labels) == 1:
            message = f"all pictures are of the class '{next(iter(self.labels))}'"
            self._put("one-class", "error", self.counts.kept, message, "a classifier needs two classes or more")
        few = [label for label, count in self.labels.items() if count < FEW_PICTURES]
        if few:
            names = ", ".join(f"'{label}'" for label in few[:MAX_EXAMPLES]) + (", …" if len(few) > MAX_EXAMPLES else "")
            message = f"{len(few):,} classes have fewer than {FEW_PICTURES} pictures: {names}"
            self._put("rare-classes", "warning", len(few), message, "add pictures, or join classes")
        if len(self.labels) > 1:
            (most, many), (least, fewest) = self.labels.most_common()[0], self.labels.most_common()[-1]
            if many >= UNEVEN * fewest:
                remedy = 'set training.class_weights = "balanced" if rare classes matter, and look at macro-F1'
                self._put("balance", "note", many, f"'{most}' has {many:,} pictures, '{least}' {fewest:,}", remedy)

    def _grade(self) -> None:
        """Sets severity and words of what was only counted so far."""
        total = max(self.counts.lines, 1)
        for name, finding in self.findings.items():
            share = finding.count / total
            if name == "unreadable":
                reasons = ", ".join(f"{reason} {count:,}" for reason, count in self.counts.dropped.items())
                finding.message = f"{finding.count:,} pictures ({share:.1%}) cannot be read: {reasons}"
                finding.remedy = "they are left out: repair or remove them"
                finding.severity = "error" if share > UNUSABLE_SHARE else "warning"
            elif name == "empty-classes":
                finding.message = f"classes whose folder has no picture: {finding.count:,}"
                finding.severity, finding.remedy = "error", "add pictures, or remove the folders"
            elif name == "contradictions":
                finding.message = f"{finding.count:,} pictures ({share:.1%}) occur with another class too"
                finding.severity = "note" if share < 0.001 else "warning"
                finding.remedy = "decide for one class"
        if not self.counts.kept:
            self._put("nothing-left", "error", total, "no picture can be read", "see the other findings")

    def _example(self, name: str, example: Example) -> None:
        finding = self.findings.setdefault(name, Finding(name, "warning", 0, "", ""))
        finding.count += 1
        if len(finding.examples) < MAX_EXAMPLES:
            finding.examples.append(example)

    def _put(
        self, name: str, severity: Severity, count: int, message: str, remedy: str,
        examples: list[Example] | None = None,
    ) -> None:  # fmt: skip
        known = self.findings[name].examples if name in self.findings else []
        self.findings[name] = Finding(name, severity, count, message, remedy, examples or known)


def _small(image: Image.Image) -> Pixels:
    """Small pictures as they are, large ones as 32 × 32."""
    return as_pixels(image) if image.width * image.height <= 4096 else _SMALL.fitted(image)


def _digest(pixels: Pixels) -> bytes:
    return blake2b(np.ascontiguousarray(pixels).data, digest_size=8).digest()
