"""Tests whether one output is significantly better than another, with sacreBLEU's paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from sacrebleu.significance import PairedTest, Result

from headwise.errors import UsageError
from headwise.evaluation.metrics import METRICS, build_metrics, check_aligned, direction

# Our names of the tests, and sacreBLEU's.
TESTS = {"bootstrap": "bs", "randomisation": "ar"}


@dataclass(frozen=True)
class Comparison:
    """Compares two outputs by one metric. `p_value` is the probability of such a difference by chance alone."""

    metric: str
    baseline: float
    system: float
    p_value: float
    signature: str
    better: int = 1

    @property
    def difference(self) -> float:
        return self.system - self.baseline

    @property
    def significant(self) -> bool:
        """Whether the difference is significant at the usual level of 5 %."""
        return self.p_value < 0.05


def compare(
    baseline: Sequence[str],
    system: Sequence[str],
    *references: Sequence[str],
    language: str = "",
    test: str = "bootstrap",
    samples: int = 0,
    metrics: Sequence[str] = METRICS,
) -> list[Comparison]:
    """Runs paired bootstrap resampling (Koehn 2004) or approximate randomisation (Riezler and Maxwell 2005) per metric.

    `samples` 0 means sacreBLEU's default (1,000 and 10,000). The seed is fixed and is part of the signature.
    """
    if test not in TESTS:
        raise UsageError(f"unknown significance test '{test}'; choose one of {', '.join(TESTS)}")
    check_aligned(baseline, references)
    check_aligned(system, references)
    paired = PairedTest(
        [("baseline", list(baseline)), ("system", list(system))],
        build_metrics(language, metrics),
        [list(reference) for reference in references],
        test_type=TESTS[test],
        n_samples=samples,
    )
    signatures, table = paired()
    names = [name for name in table if name != "System"]
    comparisons = []
    for name, metric in zip(names, metrics, strict=True):
        first, second = cast("tuple[Result, Result]", table[name])
        # If the scores are equal, no resample exceeds the difference, and sacreBLEU's p would be tiny instead of 1.
        p_value = 1.0 if second.p_value is None or first.score == second.score else float(second.p_value)
        signature = signatures[name].format()
        comparisons.append(Comparison(name, first.score, second.score, p_value, signature, direction(metric)))
    return comparisons
