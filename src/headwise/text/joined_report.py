"""The reports on several corpora that are trained on together, as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headwise.text.filters import FilterCounts
from headwise.text.findings import SEVERITIES, Report


def joined_report(reports: Mapping[str, Report]) -> Report:
    """Joins the reports on the parts of a mixture, by their names; that of a single corpus stays as it is."""
    if len(reports) == 1:
        return next(iter(reports.values()))
    counts = FilterCounts()
    for report in reports.values():
        counts.kept += report.counts.kept
        for reason, count in report.counts.dropped.items():
            counts.dropped[reason] = counts.dropped.get(reason, 0) + count
    findings = [
        replace(finding, name=f"{name}-{finding.name}", message=f"{name}: {finding.message}")
        for name, report in reports.items()
        for finding in report.findings
    ]
    return Report(
        sides=[replace(side, name=f"{name} {side.name}") for name, report in reports.items() for side in report.sides],
        counts=counts,
        findings=sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)),
        held_out={
            f"{name} {held_out}": lines
            for name, report in reports.items()
            for held_out, lines in report.held_out.items()
        },
        unit=next(iter(reports.values())).unit,
    )
