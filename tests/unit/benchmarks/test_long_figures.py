"""Figures of a long run: windows, ratios, bounds on files, and a page whose other sections are kept."""

import math
from datetime import datetime, timedelta, timezone

import pytest

from benchmarks.long_figures import Compared, Moment, compare, comparison, course, files, page_with, selected
from benchmarks.long_probes import count_files
from benchmarks.shortened import at_speed, day_clock

BEGAN = datetime(2026, 3, 1, 22, tzinfo=timezone.utc)


def moment(hundreds: int, land: float = 0.02, probe: float = 0.003, bronze: int = 10) -> Moment:
    """The moment after this many hundreds of batches, each of which took `land` seconds, and a turn every fifty."""
    batches = 100 * hundreds
    spent = {"land": (batches, batches * land), "apply": (2.0 * hundreds, hundreds * 1.0), "flush": (0.0, 0.0)}
    return Moment(30.0 * hundreds, batches, spent, 2_000_000_000, {"look-up": probe}, {"bronze": bronze}, {"vacuum": 1})


@pytest.mark.parametrize(
    ("slow", "median_verdict", "mean_verdict"),
    [((), "ok", "ok"), ((37,), "ok", "ok"), (range(35, 40), "too slow", "ok"), (range(24, 40, 2), "ok", "too slow")],
    ids=["none", "one at the end", "the last ones", "every second one at the end"],
)
def test_hundreds_of_batches_that_are_slower_at_the_end(slow, median_verdict, mean_verdict):
    """The median of a few hundreds ignores maintenance in one of them; the mean of many includes it."""
    moments, seconds = [moment(0)], 0.0
    for number in range(40):
        seconds += 100 * (0.04 if number in slow else 0.02)
        taken = moment(number + 1)
        moments.append(Moment(**{**fields_of(taken), "spent": {**taken.spent, "land": (100 * number + 100, seconds)}}))
    found = {one.what: one for one in compare(moments, ["land", "apply"])}
    assert found["land, median of 5 hundreds"].first == pytest.approx(0.02)
    assert found["land, median of 5 hundreds"].verdict == median_verdict
    assert found["land, mean of 20 hundreds"].first == pytest.approx(0.02)
    assert found["land, mean of 20 hundreds"].verdict == mean_verdict
    assert found["apply, mean of 20 hundreds"].ratio == pytest.approx(1.0)


def fields_of(one: Moment) -> dict[str, object]:
    return {name: getattr(one, name) for name in Moment.__dataclass_fields__}


def test_a_probe_is_compared_by_medians_of_several_moments():
    """One slow measurement does not affect the result."""
    probes = [0.003] * 20
    probes[0], probes[-1] = 0.3, 0.3
    moments = [moment(number, probe=seconds) for number, seconds in enumerate(probes)]
    found, mean = (one for one in compare(moments, ["land", "apply"]) if one.what.startswith("look-up"))
    assert (found.first, found.last, found.verdict) == (0.003, 0.003, "ok")
    assert mean.what == "look-up, mean of 9"
    assert mean.first == pytest.approx(0.036)


def test_a_phase_that_did_not_run_is_not_ok():
    moments = [moment(number) for number in range(4)]
    for flush in list(compare(moments, ["flush"]))[:2]:
        assert math.isnan(flush.ratio)
        assert flush.verdict == "not measured"


def test_a_row_of_the_comparison_has_units_and_the_target():
    *_, row = comparison([Compared("land", 0.02, 0.03)])
    assert row == "| land | 20 ms | 30 ms | 1.50 | ≤ 1.3 | too slow |"
    assert "1.5 ms" in str(Compared("look-up", 0.0015, 0.0015))


@pytest.mark.parametrize(("last", "verdict"), [(120, "ok"), (150, "ok"), (151, "growing")])
def test_files_are_bounded_by_those_of_the_second_quarter(last, verdict):
    """1.3 times 100, and twenty: 150."""
    counts = [500, 500, 100, 90, 80, 70, 60, last]
    *_, row = files([moment(number, bronze=count) for number, count in enumerate(counts)])
    assert row.endswith(f"| {verdict} |")


def test_files_that_maintenance_leaves_do_not_grow():
    """The least of a quarter shows them, whatever the most is."""
    counts = [10, 500] * 4 + [200, 500] * 4
    rows = list(files([moment(number, bronze=count) for number, count in enumerate(counts)]))
    assert [row.split(" | ")[-1] for row in rows if row.startswith("| at most")] == ["growing |", "ok |"]


def test_the_shown_moments_include_the_first_and_the_last():
    moments = [moment(number) for number in range(101)]
    assert [one.batches for one in selected(moments, 3)] == [0, 5_000, 10_000]
    assert selected(moments[:2]) == moments[:2]
    rows = list(course(moments, ["land", "apply"]))
    assert rows[2] == "| 0 to 1,000 | 3.3 | 20 ms | 500 ms | 2.00 GB |"
    assert len(rows) == 12


def test_a_page_keeps_the_sections_of_other_parts():
    parts = ["Batches", "Tables", "Schema"]
    page = "\n".join(["# Long runs", "", "x", "", *page_with("", parts, "Schema", ["five", "", "| a |"]), ""])
    page = "\n".join(["# Long runs", "", "x", "", *page_with(page, parts, "Batches", ["old"]), ""])
    assert page_with(page, parts, "Batches", ["new", "lines"]) == [
        *("## Batches", "", "new", "lines", "", "## Schema", "", "five", "", "| a |"),
    ]


def test_a_clock_whose_days_take_two_minutes():
    assert at_speed(BEGAN, BEGAN) == BEGAN
    assert at_speed(BEGAN, BEGAN + timedelta(minutes=4)) == BEGAN + timedelta(days=2)
    began = datetime.now(timezone.utc) - timedelta(minutes=12)
    assert day_clock(began).now(timezone.utc) - began >= timedelta(days=6)
    assert day_clock(began).fromisoformat("2026-03-01") == datetime(2026, 3, 1)  # noqa: DTZ001


def test_files_of_tables_and_of_their_logs(tmp_path):
    log = tmp_path / "shop" / "orders" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").touch()
    (log / "00000000000000000050.checkpoint.parquet").touch()
    (tmp_path / "shop" / "orders" / "part-0.parquet").touch()
    (tmp_path / "shop" / "orders" / ".part-0.parquet.crc").touch()
    assert count_files(tmp_path) == (1, 2)
