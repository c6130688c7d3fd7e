"""The table says what the results say: ratios the right way round, losses told, nobody left out in silence."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    module = importlib.import_module("benchmarks.results")
    monkeypatch.setattr(module, "matmul_peak", lambda threads: 123.4e9)  # two seconds of multiplying
    return module


@pytest.fixture
def table(results: ModuleType) -> ModuleType:
    return importlib.import_module("benchmarks.table")


def test_a_ratio_above_one_means_better_whichever_direction_is(results: ModuleType) -> None:
    faster = results.compare("speed", "a second", [200, 220, 180], {"slow": [100, 100, 100], "a": 50}, "higher")
    assert (faster.best_peer, faster.ratio, faster.spread) == ("slow", 2.0, (1.8, 2.2))
    smaller = results.compare("memory", "MB", 500, {"big": 2000, "small": 1000}, "lower")
    assert (smaller.best_peer, smaller.ratio, smaller.rounds) == ("small", 2.0, 1)
    behind = results.compare("time", "s", [2.0], {"quick": [1.0]}, "lower")
    assert behind.ratio == 0.5
    alone = results.compare("padding", "%", 3.7, {}, "lower")
    assert (alone.ratio, alone.best_peer, alone.spread) == (None, None, None)


@pytest.mark.parametrize("figure", [[], 0, [1.0, -2.0]])
def test_a_figure_that_is_none_is_refused(results: ModuleType, figure: object) -> None:
    with pytest.raises(ValueError, match="positive"):
        results.compare("x", "y", figure, {}, "higher")


@pytest.fixture
def saved(results: ModuleType, tmp_path: Path) -> list[dict[str, object]]:
    result = results.Result("serving", "Serving", {"clients": 8})
    result.add("requests, 16 clients", "requests/s", [90, 100], {"Other 1.0": [30, 50], "Third 2.0": [10, 10]})
    result.add("memory", "MB", 900, {"Other 1.0": 300}, better="lower", note="with one model")
    result.add("padding", "%", 3.7, better="lower")
    result.leave_out("Gone 3.0", "could not be installed (no such package)")
    result.save(tmp_path / "results" / "serving.json")
    second = results.Result("startup", "Start-up", threads=1)
    second.add("from the command to a translation", "s", [2.0], {"Quick": [1.0]}, better="lower")
    second.save(tmp_path / "results" / "startup.json")
    found: list[dict[str, object]] = results.load_results(tmp_path / "results")
    return found


def test_a_saved_result_says_where_and_with_what_it_was_measured(saved: list[dict[str, object]]) -> None:
    machine = saved[0]["machine"]
    assert isinstance(machine, dict)
    assert machine["matmul_gflops"] == 123.4
    assert machine["versions"]["torch"]
    assert machine["cpu"]
    assert json.dumps(saved)


def test_the_page_has_every_row_every_peer_and_who_was_left_out(
    table: ModuleType, saved: list[dict[str, object]]
) -> None:
    page = table.page(saved)
    assert page.index("## Serving") < page.index("## Start-up")
    assert (
        "| requests, 16 clients, requests/s | 95.0 | Other 1.0 **40.0**, Third 2.0 10.0 | 2.50 | 2.00 to 3.00 | 2 |"
    ) in page.splitlines()
    assert "| memory, MB (with one model) | 900 | Other 1.0 **300** | 0.33 (behind) |" in page
    assert "| padding, % | 3.70 | – | – | – | 1 |" in page
    assert "- Gone 3.0: could not be installed (no such package)" in page
    assert "matmul peak 123.4 GF/s" in page
    assert "clients 8" in page


def test_the_readmes_get_the_chosen_rows_with_losses_and_all_pages_keep_their_other_text(
    table: ModuleType, saved: list[dict[str, object]], tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    place = "before\n\n<!-- table -->\nold\n<!-- /table -->\n\nafter\n"
    (tmp_path / "docs/benchmarks.md").write_text(place, encoding="utf-8")
    (tmp_path / "README.md").write_text(place, encoding="utf-8")
    (tmp_path / "README.zh-CN.md").write_text("nothing here\n", encoding="utf-8")
    assert table.write_tables(saved, tmp_path) == ["README.zh-CN.md"]
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("before\n\n<!-- table -->\n\n|  | Headwise | best peer |")
    assert readme.endswith("<!-- /table -->\n\nafter\n")
    assert "requests per second | 95.0 | 40.0 (Other 1.0) | 2.50 (2.00–3.00) | the peer is" in readme
    assert "seconds | 2.00 | 1.00 (Quick) | 0.50, behind | ours does not" in readme
    assert "memory" not in readme
    assert "old" not in readme
    assert "0.50，落后" in table.short(saved, "zh")
    table.write_tables(saved, tmp_path)
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == readme


def test_a_readme_has_one_table_per_machine(table: ModuleType, saved: list[dict[str, object]]) -> None:
    assert table.short(saved).count("| Headwise |") == 1
    machine = saved[0]["machine"]
    assert isinstance(machine, dict)
    elsewhere = [{**saved[0], "machine": {**machine, "cpu": "Another CPU"}}, saved[1]]
    assert table.short(elsewhere).count("| Headwise |") == 2
    assert "*Another CPU, " in table.short(elsewhere)


def test_the_readmes_of_this_project_have_six_to_twelve_rows_of_its_results(
    table: ModuleType, results: ModuleType
) -> None:
    measured = results.load_results()
    assert 6 <= len(table.PICKS) <= 12
    assert [pick.what for pick in table.PICKS if table.find(measured, pick) is None] == []
    for name, language in (("README.md", "en"), ("README.zh-CN.md", "zh")):
        readme = (ROOT / name).read_text(encoding="utf-8")
        assert table.short(measured, language) in readme, "run: .venv/bin/python -m benchmarks table"


def test_the_page_of_this_project_is_made_from_its_results(table: ModuleType, results: ModuleType) -> None:
    written = (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8")
    assert table.page(results.load_results()) in written, "run: .venv/bin/python -m benchmarks table"


def test_every_benchmark_that_make_bench_names_has_a_place_in_the_table(table: ModuleType) -> None:
    runs = importlib.import_module("benchmarks.__main__").RUNS
    assert set(runs) <= set(table.ORDER)


def test_time_to_quality_finds_when_a_curve_reaches_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    quality = importlib.import_module("time_to_quality")

    def curve(*found: tuple[float, float]) -> list[dict[str, float]]:
        return [{"minutes": minutes, "updates": 50 * minutes, "bleu": bleu} for minutes, bleu in found]

    points = curve((2.0, 10.0), (4.0, 30.0), (6.0, 28.0), (8.0, 36.0))
    assert quality.reached(points, 20.0) == 3.0
    assert quality.reached(points, 5.0) == 2.0
    assert quality.reached(points, 40.0) is None
    assert quality.best_until(points, 6.0) == 30.0
    assert quality.best_until(points, 1.0) is None
    curves = {
        "headwise": {"points": points},
        "torch": {"points": curve((4.0, 9.0), (8.0, 30.0))},
        "opennmt": {"points": [], "left_out": "could not be installed (gone)"},
    }
    result = quality.summarise(curves, 8.0, 2)
    last = result.rows[-1]
    assert (last.ours, last.peers, last.ratio) == (4.0, {"torch.nn.Transformer": 8.0}, 2.0)
    assert "averaged weights" in last.note
    assert result.settings["updates per minute"] == "Headwise 50; torch.nn.Transformer 50"
    slow = {**curves, "headwise-short": {"points": curve((4.0, 8.0))}}
    both = quality.summarise(slow, 8.0, 2)
    (half,) = [row for row in both.rows if "after 4 minutes, schedule of 4" in row.what]
    assert (half.ours, half.peers) == (8.0, {"torch.nn.Transformer": 9.0})
    assert any("schedule of 4" in what and reason == "not reached" for what, reason in both.left_out.items())
    assert result.left_out == {"OpenNMT-py 3.5.1": "could not be installed (gone)"}


def test_the_picture_of_time_to_quality_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    quality = importlib.import_module("time_to_quality")
    points = [{"minutes": 1.0, "bleu": 5.0}, {"minutes": 2.0, "bleu": 9.0}]
    quality.draw({"headwise": {"points": points}, "torch": {"points": []}}, tmp_path / "picture.svg")
    picture = (tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert picture.count('id="line2d_') > 2
    quality.draw({"headwise": {"points": points}, "torch": {"points": []}}, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text(encoding="utf-8") == picture
