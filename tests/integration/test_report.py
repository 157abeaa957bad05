"""`dmdelta report`: its facts are compared with what was done, and its page is shown in a real browser."""

import json
import struct
import zlib
from collections import Counter
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.errors import ConfigError
from dmdelta.report.page import render_page
from tests.support.browser import browsing, shown
from tests.support.reports import busy_report
from tests.support.task import Task

BINLOGS = Path(__file__).parents[2] / "pipelines" / "quickstart-binlogs"
WIDTHS = (390, 1280)
PAPER = 794
"""An A4 sheet, in CSS pixels."""


@pytest.fixture(scope="module")
def browser():
    """One for the module."""
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def quickstart(spark, tmp_path_factory):
    """The spec of a task over the shipped binlogs, in a lakehouse of its own, after its run."""
    folder = tmp_path_factory.mktemp("quickstart")
    sources = [{"source-id": f"shop-{name}", "binlog-dir": str(BINLOGS / name)} for name in ("mysql", "mariadb")]
    spec = folder / "quickstart.yml"
    spec.write_text(yaml.safe_dump({"name": "q", "sources": sources, "lakehouse": {"root": str(folder / "lake")}}))
    assert execute(["run", str(spec), "--until-caught-up"]) == 0
    return spec


def facts(capsys, spec, *arguments):
    """The facts of the report."""
    capsys.readouterr()
    assert execute(["report", str(spec), *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def marks(page, figure):
    """How many marks a chart has, by series."""
    classes = page.locator(f"#{figure} svg.plot .mark").evaluate_all("all => all.map(e => e.getAttribute('class'))")
    return Counter(each.rpartition(" s-")[2] for each in classes)


def rows_of_pixels(png):
    """The filtered raw rows of a PNG: rows of a single colour are equal."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    data, place = b"", 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        data += png[place + 8 : place + 8 + length] if png[place + 4 : place + 8] == b"IDAT" else b""
        place += 12 + length
    raw = zlib.decompress(data)
    size = 1 + width * {2: 3, 6: 4}[kind]
    return width, [raw[number * size : (number + 1) * size] for number in range(height)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_a_phone_and_a_desktop(browser, tmp_path, width, scheme):
    """No browser errors, no external request, nothing wider than the screen, and the picture is not blank."""
    path = tmp_path / "busy.html"
    path.write_text(render_page(busy_report()), encoding="utf-8")
    with shown(browser, path, width, scheme) as found:
        assert found.page.title() == "shop: Unhealthy"
        assert found.page.evaluate("document.documentElement.scrollWidth") == width
        seen, lines = rows_of_pixels(found.page.screenshot(full_page=True))
        assert (seen, found.complaints) == (width, [])
    assert len(lines) > 2000
    assert len(set(lines)) > 500


def test_the_page_fits_paper(browser, tmp_path):
    """In print nothing scrolls: everything fits the width of a sheet."""
    path = tmp_path / "busy.html"
    path.write_text(render_page(busy_report()), encoding="utf-8")
    with shown(browser, path, PAPER) as found:
        found.page.emulate_media(media="print")
        assert found.page.evaluate("document.documentElement.scrollWidth") == PAPER
        assert found.page.locator("details").first.is_hidden()


def test_each_value_has_its_mark(browser, tmp_path):
    """As many bars and dots as the data has values, with tooltips."""
    report = busy_report()
    path = tmp_path / "busy.html"
    path.write_text(render_page(report), encoding="utf-8")
    with shown(browser, path, 1280) as found:
        page = found.page
        assert marks(page, "lag") == {"bronze": len(report.paces), "silver": len(report.paces)}
        assert marks(page, "times") == {"landing": len(report.paces), "applying": len(report.paces)}
        assert marks(page, "rows") == dict.fromkeys(("inserts", "updates", "deletes"), len(report.rows))
        failed = sum(run.failed > 0 for run in report.checks.runs)
        assert marks(page, "checks") == {"passed": len(report.checks.runs), "failed": failed}
        assert page.locator("#tables tbody tr").count() == len(report.tables)
        assert page.locator("#lag path.moment").count() == report.schema_change_count
        assert "silver 12.4 s" in page.locator("#lag .spot title").nth(19).inner_html()
        drawn = page.locator("svg.plot rect.mark").evaluate_all("all => all.map(e => e.getBoundingClientRect().height)")
        assert min(drawn) > 0
        assert found.complaints == []


def test_the_quickstart_has_a_page(quickstart, browser, tmp_path, capsys):
    """From two archives, without a server: its facts are those of the binlogs, and its page shows them."""
    path = tmp_path / "report.html"
    assert execute(["report", str(quickstart), "-o", str(path)]) == 0
    assert ": healthy" in capsys.readouterr().out
    found = facts(capsys, quickstart)
    changed = execute_events(capsys, quickstart)
    assert {(table["source_id"], table["table"]): sum(table["rows"].values()) for table in found["tables"]} == changed
    assert sum(sum(stretch["rows"].values()) for stretch in found["rows"]) == sum(changed.values())
    assert all(table["silver_at"] and not table["behind"] for table in found["tables"])
    assert found["schema_change_count"] == len(found["schema_changes"]) > 0
    with shown(browser, path, 1280) as opened:
        assert sum(marks(opened.page, "rows").values()) == sum(len(stretch["rows"]) for stretch in found["rows"])
        assert marks(opened.page, "lag") == {}  # the files are old, so their lag means nothing
        assert opened.page.locator("#tables tbody tr").count() == len(found["tables"])
        assert opened.complaints == []


def execute_events(capsys, spec):
    """Row changes in bronze by source and table, as `dmdelta events` has them."""
    capsys.readouterr()
    assert execute(["events", str(spec), "--limit", "100000", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    return Counter((row["source_id"], row["table"]) for row in rows if row["op"] in ("insert", "update", "delete"))


def test_a_page_that_cannot_be_written_is_an_error(quickstart, tmp_path, capsys):
    """With the exit code of a wrong argument."""
    assert execute(["report", str(quickstart), "-o", str(tmp_path / "no" / "report.html")]) == ConfigError.exit_code
    assert "-o" in capsys.readouterr().err
    assert execute(["report", str(quickstart), "--last", "0s"]) == 2


def test_before_the_first_run_there_is_a_page(spark, tmp_path, capsys):
    """It states that nothing has landed; reading creates no table."""
    spec = tmp_path / "spec.yml"
    source = {"source-id": "one", "binlog-dir": str(BINLOGS / "mysql")}
    spec.write_text(yaml.safe_dump({"name": "e", "sources": [source], "lakehouse": {"root": str(tmp_path / "lake")}}))
    assert execute(["report", str(spec), "-o", str(tmp_path / "r.html")]) == 0
    assert "Nothing has landed yet" in (tmp_path / "r.html").read_text("utf-8")
    assert not (tmp_path / "lake").exists()


@pytest.mark.long
def test_a_live_source_has_lag_and_safe_mode(mysql80, spark, tmp_path, capsys):
    """Ages of real changes by stage, rows by operation, a statement without its literal, a range read again."""
    database = mysql80.fresh_database("report")
    task = Task(tmp_path, mysql80, database)
    task.start_here()
    mysql80.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT)", database=database)
    mysql80.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", database=database)
    task.catch_up()
    mysql80.execute("ALTER TABLE t ADD c VARCHAR(9) DEFAULT 's3cret'", database=database)
    mysql80.execute("UPDATE t SET a = 9 WHERE id > 1", "DELETE FROM t WHERE id = 1", database=database)
    task.catch_up()
    with task.environment():
        found = facts(capsys, task.spec)
        (table,) = found["tables"]
        assert table["rows"] == {"insert": 3, "update": 2, "delete": 1}
        assert 0 < table["silver_lag"] < 600
        lags = [(pace["bronze_lag"], pace["silver_lag"]) for pace in found["paces"] if pace["silver_lag"] is not None]
        assert lags
        assert all(0 < bronze < silver < 600 for bronze, silver in lags)
        assert all(pace["land_seconds"] > 0 for pace in found["paces"] if pace["silver_lag"] is not None)
        shown_statements = [change["statement"] for change in found["schema_changes"]]
        assert shown_statements == [
            "ALTER TABLE t ADD c VARCHAR(9) DEFAULT '…'",
            "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        ]
        assert found["safe_ranges"] == []
        assert execute(["run", str(task.write_spec()), "--until-caught-up", "--remove-meta"]) == 0
        anew = facts(capsys, task.spec)
    (safe,) = anew["safe_ranges"]
    assert (safe["source_id"], safe["end"].partition("/")[0]) == ("s1", "2")
    assert sum(anew["tables"][0]["rows"].values()) == 2 * 6
    assert len(facts_within(capsys, task, "1s")["paces"]) <= len(anew["paces"])


def facts_within(capsys, task, last):
    """The facts of a shorter window."""
    with task.environment():
        return facts(capsys, task.spec, "--last", last)
