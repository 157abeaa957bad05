"""`examples/quickstart.py`: what a newcomer sees, twice, and the contracts that it shows, against the shipped binlogs."""

import csv
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from dmdelta.cli.sql_output import Output, write
from dmdelta.config import load_spec
from dmdelta.engine.live.sql import SqlSession
from dmdelta.engine.live.tables import LiveTables
from dmdelta.engine.quality.command import QualityRequest, evaluate_tables
from dmdelta.errors import ConfigError
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import query_session
from dmdelta.logging import configure
from dmdelta.quality.results import Scope
from dmdelta.quality.suite import load_suites
from tests.support.shop import TABLES

ROOT = Path(__file__).resolve().parents[2]
NOTHING_NEW = "nothing is new, so nothing was written"
SOURCES = {"shop-mysql": "shop", "shop-mariadb": "boutique"}
"""The schema of each source."""


@pytest.fixture(autouse=True)
def logging_as_before():
    """The demo's process logs errors only: reset that for the later tests of this process."""
    yield
    configure()


@pytest.fixture(scope="module")
def demo():
    """The program as a module."""
    found = importlib.util.spec_from_file_location("quickstart", ROOT / "examples" / "quickstart.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """The shipped spec, with a lakehouse of its own."""
    folder = tmp_path_factory.mktemp("quickstart")
    values = yaml.safe_load((ROOT / "pipelines" / "quickstart.yml").read_text())
    for source in values["sources"]:
        source["binlog-dir"] = str(ROOT / "pipelines" / source["binlog-dir"])
    values["quality"]["schemas"] = str(ROOT / "schemas")
    values["lakehouse"]["root"] = str(folder / "lake")
    path = folder / "quickstart.yml"
    path.write_text(yaml.safe_dump(values))
    return path


def printed(demo, spec, capfd):
    """What a run prints, by the headings of its sections."""
    capfd.readouterr()
    demo.main(spec)
    names = "Run|Bronze|Silver|Quarantine|Evaluation|Verification|Pages"
    out = capfd.readouterr().out
    sections = re.findall(rf"\n({names})\b(.*?)(?=\n(?:{names})\b|\Z)", out, re.DOTALL)
    found = {}
    for name, text in sections:
        found[name] = found.get(name, "") + text
    return found


def lines_with(text, *words):
    """The lines of a table that contain all of these words."""
    return [line for line in text.splitlines() if all(word in line for word in words)]


def test_the_demo_shows_quarantine_and_evaluation_twice(demo, spec, spark, capfd):
    """Planned violations, with reasons and counts; the pages are written; a second run writes nothing new."""
    first = printed(demo, spec, capfd)
    assert list(first) == ["Run", "Bronze", "Silver", "Quarantine", "Evaluation", "Verification", "Pages"]
    changes = int(re.search(r"([\d,]+) row changes of 12 tables", first["Run"])[1].replace(",", ""))
    lake = Lakehouse(root=str(spec.parent / "lake"))
    assert changes == spark.table(lake.bronze).where("op IN ('insert', 'update', 'delete')").count() > 1000
    assert "No difference: bronze is what the logs say" in first["Verification"]
    for table in ("shop.orders", "boutique.orders"):
        assert lines_with(first["Verification"], table)
    for database in ("shop", "boutique"):
        (total,) = lines_with(first["Quarantine"], f"{database}.orders")
        assert all(word in total for word in ('{"id":9102}', "-25.5", "column=total, min_value=0"))
        (email,) = lines_with(first["Quarantine"], f"{database}.customers")
        assert all(word in email for word in ('{"id":9001}', "grace.hopper at example.org", "column=email"))
    (orphan,) = lines_with(
        first["Evaluation"], "shop.orders", "foreign key (customer_id) references shop.customers (id)"
    )
    rows = spark.table(lake.silver("shop", "orders"))
    written = rows.where(f"_dm_version.seq >= {2 << 40}").count()  # a file's number x 2^40: the second file
    assert re.search(rf" no +{written} +1 +id=9103\b", orphan), orphan
    (mean,) = lines_with(first["Evaluation"], "shop.orders", "expect_column_mean_to_be_between")
    assert " yes " in mean
    pages = [Path(found) for found in re.findall(r": (/\S+\.html)", first["Pages"])]
    assert [page.name for page in pages] == ["report.html", "index.html"]
    assert all("<html" in page.read_text("utf-8") for page in pages)
    validated = sorted((pages[1].parent / "validations" / "shop" / "orders").rglob("*.html"))
    assert len(validated) == 1
    assert str(validated[0].relative_to(pages[1].parent)) in pages[1].read_text("utf-8")

    before = spark.sql(f"DESCRIBE HISTORY {lake.bronze}").count()
    second = printed(demo, spec, capfd)
    assert NOTHING_NEW in second["Run"]
    assert NOTHING_NEW not in first["Run"]
    assert spark.sql(f"DESCRIBE HISTORY {lake.bronze}").count() == before
    assert {name: text for name, text in second.items() if name != "Run"} == {
        name: text for name, text in first.items() if name != "Run"
    }


@pytest.mark.long
def test_every_shipped_contract_fits_its_table(demo, spec, spark):
    """Columns, types, keys and expectations pass, except as planned; a contract has every column of its table."""
    lake, suites = Lakehouse(root=str(spec.parent / "lake")), load_suites(ROOT / "schemas")
    if not (spec.parent / "lake").exists():
        demo.run(load_spec(spec))
    judged = evaluate_tables(load_spec(spec), QualityRequest(), lambda _: None)
    every = [(one.subject.source, one.subject.table) for one in judged]
    assert len(every) == len(set(every))
    assert set(every) == {(source, (schema, table)) for source, schema in SOURCES.items() for table in TABLES}
    for one in judged:
        contract = suites.of(one.subject.table).contract
        columns = spark.table(lake.silver(*one.subject.table)).columns
        assert list(contract.columns) == [name for name in columns if not name.startswith("_dm_")]
        results = {result.expectation: result for result in one.results}
        assert results["columns and key"].success, results["columns and key"].note
        assert {str(each) for each in suites.of(one.subject.table).expectations} <= set(results)
    failed = {
        (one.subject.table, result.expectation): result.samples
        for one in judged
        for result in one.results
        if not result.success
    }
    assert failed == {
        ((database, "orders"), f"foreign key (customer_id) references {database}.customers (id)"): ({"id": "9103"},)
        for database in ("shop", "boutique")
    }


def test_an_evaluation_covers_the_sources_that_have_the_tables(demo, spec, spark):
    """With the range of each; a place in one source's log needs its name."""
    if not (spec.parent / "lake").exists():
        demo.run(load_spec(spec))

    def evaluated(**request):
        told = []
        found = evaluate_tables(load_spec(spec), QualityRequest(**request), told.append)
        assert told == found
        return [(one.subject.source, ".".join(one.subject.table), one.subject.scope) for one in found]

    customers = [(source, f"{schema}.customers") for source, schema in SOURCES.items()]
    assert evaluated(table="*.customers", last=1, images=True) == [(*one, Scope.IMAGES) for one in customers]
    assert evaluated(table="boutique.customers") == [("shop-mariadb", "boutique.customers", Scope.TABLE)]
    with pytest.raises(ConfigError, match="bronze has no table nothing"):
        evaluated(table="nothing.here")
    with pytest.raises(ConfigError, match="place in the log of one source") as caught:
        evaluated(table="*.customers", begin="binlog.000002:4")
    assert "--source" in (caught.value.hint or "")


@pytest.mark.long
def test_a_range_of_all_time_is_rebuilt_for_each_source(demo, spec, spark):
    """As the Databricks job `replay_quality` does. MariaDB's GTIDs look like a date, and a date is a time nevertheless."""
    if not (spec.parent / "lake").exists():
        demo.run(load_spec(spec))
    for begin, end in (("2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"), ("2000-01-01", "2100-01-01")):
        request = QualityRequest(table="*.customers", begin=begin, end=end, replay=True)
        found = evaluate_tables(load_spec(spec), request, lambda _: None)
        assert [(one.subject.source, one.subject.scope) for one in found] == [(one, Scope.REPLAY) for one in SOURCES]
        assert all(one.subject.begin is not None and one.results for one in found)


@pytest.fixture(scope="module")
def session(demo, spec, spark):
    """A SQL session on the demo's tables."""
    if not (spec.parent / "lake").exists():
        demo.run(load_spec(spec))
    return SqlSession(LiveTables.of(query_session(spark), load_spec(spec)))


def answer(session, text):
    return [tuple(row) for row in session.query(text).collect()]


def test_queries_of_the_demo(session):
    """Silver, live, bronze, dm_meta and quarantines by name, and columns by their table."""
    names = session.names()
    assert {"shop.orders", "shop.orders_live", "shop.orders_quarantine", "bronze.events"} <= set(names)
    assert "dm_meta.quickstart_checkpoint" in names
    ((silver,),) = answer(session, "SELECT count(*) FROM shop.orders")
    assert answer(session, "SELECT count(*) FROM shop.orders_live") == [(silver,)]
    joined = "SELECT count(*) FROM shop.orders JOIN shop.orders_live l ON l.id = orders.id"
    assert answer(session, joined) == [(silver,)]
    assert answer(session, "SELECT count(*) > 100 FROM bronze.events WHERE table_name = 'orders'") == [(True,)]
    assert answer(session, "SELECT count(*) > 0 FROM dm_meta.checkpoint") == [(True,)]
    assert answer(session, "SELECT row_key FROM shop.orders_quarantine") == [('{"id":9102}',)]
    assert len(answer(session, "SHOW TABLES;")) == len(names)
    ((plan,),) = answer(session, "EXPLAIN SELECT * FROM shop.orders_live")
    assert "Physical Plan" in plan


def test_the_past_of_the_demo(session):
    """All tables at an earlier time: live reads of different tables agree with each other."""
    ((at, later),) = answer(
        session,
        "SELECT date_format(percentile_approx(committed_at, 0.5), \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\"), count(*) "
        "FROM bronze.events WHERE source_id = 'shop-mysql'",
    )
    past = SqlSession(session.tables, f"{at}Z")
    ((rows, orders),) = answer(past, "SELECT (SELECT count(*) FROM bronze.events), (SELECT count(*) FROM shop.orders)")
    assert 0 < rows < later * 2
    ours = "FROM bronze.events WHERE schema_name = 'shop' AND table_name = 'orders'"
    expected = f"""SELECT count(*) FROM (SELECT max_by(kept, struct(epoch, seq, row, kept)) AS kept FROM (
        SELECT before:id::bigint AS id, epoch, seq, row, false AS kept {ours} AND (op = 'delete' OR key_changed)
        UNION ALL SELECT after:id::bigint, epoch, seq, row, true {ours} AND op IN ('insert', 'update')) GROUP BY id)
        WHERE kept"""
    failing = "SELECT count(*) FROM shop.orders WHERE total < 0"
    assert answer(past, failing) == [(0,)]
    ((kept,),) = answer(past, expected)
    assert kept - 1 <= orders <= kept  # a quarantined row is in bronze alone


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM shop.orders",
        "WITH x AS (SELECT * FROM shop.orders) INSERT INTO shop.orders SELECT * FROM x",
        "FROM shop.orders INSERT INTO shop.orders SELECT *",
        "SELECT nothing FROM shop.orders",
    ],
)
def test_a_query_that_writes_or_is_invalid_is_refused(session, text):
    """Nothing is written."""
    with pytest.raises(ConfigError):
        session.query(text)


@pytest.mark.parametrize("output", list(Output))
def test_the_formats_of_rows(session, output, tmp_path, monkeypatch):
    """Text, CSV, one JSON document, a Parquet file: nested values, NULLs and bytes included."""
    rows = session.query(
        "SELECT 1 AS id, NULL AS gone, DECIMAL(1.50) AS total, 'a\"ü' AS text, X'ff' AS raw, parse_json('{\"a\": [1]}') AS doc, "
        "TIMESTAMP'2026-01-01 00:00:00' AS at, array(1, 2) AS many"
    )
    file = tmp_path / "out"
    with open(file, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        write(rows, output)
    monkeypatch.undo()
    if output is Output.PARQUET:
        assert pq.read_table(file).to_pylist()[0]["doc"] == '{"a":[1]}'
        return
    text = file.read_text("utf-8")
    if output is Output.JSON:
        (found,) = json.loads(text)
        assert (found["id"], found["gone"], found["text"], found["doc"]) == (1, None, 'a"ü', {"a": [1]})
        assert (found["raw"], found["many"]) == ("FF", [1, 2])
    elif output is Output.CSV:
        header, line = csv.reader(text.splitlines())
        assert header == ["id", "gone", "total", "text", "raw", "doc", "at", "many"]
        assert line[:6] == ["1", "", "2", 'a"ü', "FF", '{"a":[1]}']
    else:
        assert "NULL" in text


@pytest.mark.long
def test_the_prompt(session, spec, tmp_path):
    """In a terminal: an error, a query of two lines, a statement from the history, and the end."""
    assert session.names()
    assert shutil.which("tmux"), "tmux types into the prompt: install it"
    name = f"dmdelta-{uuid.uuid4().hex[:8]}"

    def tmux(*arguments):
        command = ["tmux", "-L", name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def wait_for(text, times=1):
        deadline = time.monotonic() + 120
        while (screen := tmux("capture-pane", "-p", "-S", "-200")).count(text) < times:
            assert time.monotonic() < deadline, screen
            time.sleep(0.5)

    environment = {"XDG_STATE_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = [sys.executable, "-c", "from dmdelta.cli.main import main; main()", "sql", str(spec)]
    command = shlex.join(["env", *(f"{name}={value}" for name, value in environment.items()), *program])
    tmux("new-session", "-d", "-x", "150", "-y", "50", command)
    try:
        wait_for("sql>")
        tmux("send-keys", "SELECT nothing FROM shop.orders\\;", "Enter")
        wait_for("the statement is invalid")
        tmux(
            "send-keys",
            "SELECT 900 * 900 + 7 AS answer, count(*) > 0 AS any",
            "Enter",
            "FROM shop.orders_live\\;",
            "Enter",
        )
        wait_for("810007")
        tmux("send-keys", "Up", "Enter")
        wait_for("810007", times=2)
        tmux("send-keys", "C-d")
        assert "orders_live" in (tmp_path / "dmdelta" / "sql-history").read_text()
    finally:
        subprocess.run(["tmux", "-L", name, "kill-server"], check=False, capture_output=True)
