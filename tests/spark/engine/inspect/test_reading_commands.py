"""Read-only commands: events, checkpoint show and status, with and without data."""

import json

import pytest

from dmdelta.bronze.landing import open_bronze
from dmdelta.checkpoint import CheckpointStore, FlushReason, Point, Snapshot, TablePoint
from dmdelta.cli.main import execute
from dmdelta.lakehouse.commits import CommitTag, append
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.model.position import Position, seq_of

FILE = "binlog.000003"


def at(offset):
    return Position(1, FILE, offset)


def write_spec(folder):
    """The path of a spec and the lakehouse that it names, both in `folder`."""
    (folder / "archive").mkdir()
    place = Lakehouse(root=str(folder / "lakehouse"))
    path = folder / "spec.yml"
    path.write_text(
        f"name: shop\nsources: [{{source-id: one, binlog-dir: archive}}]\nlakehouse: {{root: {place.root}}}\n"
    )
    return str(path), place


@pytest.fixture
def empty(tmp_path):
    """A spec of a task that never ran."""
    return write_spec(tmp_path)[0]


@pytest.fixture(scope="module")
def landed(spark, tmp_path_factory):
    """A spec with three rows of a table in bronze and a checkpoint; the tests only read them."""
    spec, lakehouse = write_spec(tmp_path_factory.mktemp("landed"))
    open_bronze(spark, lakehouse.bronze, "shop")
    rows = spark.sql(
        f"""SELECT 'one' AS source_id, 1 AS epoch, CAST(seq AS BIGINT) AS seq, 0 AS row, '{FILE}' AS binlog_file,
        CAST(seq - {seq_of(FILE, 0)} AS BIGINT) AS binlog_pos, 'u:7' AS gtid,
        TIMESTAMP '2026-01-02 03:04:05.000006Z' AS committed_at, 'shop' AS schema_name, 'orders' AS table_name, op,
        CAST(NULL AS STRING) AS xid, CAST(NULL AS ARRAY<STRING>) AS image, ddl, 1L AS schema_version,
        CAST(NULL AS VARIANT) AS before, parse_json(doc) AS after, current_timestamp() AS landed_at,
        current_date() AS landed_on
        FROM VALUES ({seq_of(FILE, 100)}, 'schema', '{{}}', NULL), ({seq_of(FILE, 100)} + 1, 'insert', NULL, '{{"id":7}}'),
        ({seq_of(FILE, 200)}, 'delete', NULL, NULL) AS t(seq, op, ddl, doc)"""
    )
    tag = CommitTag(
        app="dmdelta:shop:one:land", version=1, task="shop", source="one", run="r", begin=at(4), end=at(300)
    )
    append(spark, rows, lakehouse.bronze, tag)
    store = CheckpointStore(spark, lakehouse, "shop", "one", "r")
    store.open()
    tables = (TablePoint("shop", "orders", Point(at(250)), 3),)
    store.write(Snapshot("one", Point(at(200)), tables, Point(at(300))), tables, FlushReason.INTERVAL)
    return spec


def shown(capsys, *arguments):
    """What a command prints as JSON."""
    assert execute([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_events_show_changes_in_the_order_of_the_log(landed, capsys):
    """Structure rows are left out unless asked for; filters and the limit hold."""
    everything = shown(capsys, "events", landed)
    assert [row["op"] for row in everything] == ["insert", "delete"]
    assert everything[0] == {
        "source_id": "one",
        "position": f"1/{FILE}:101",
        "gtid": "u:7",
        "committed_at": "2026-01-02T03:04:05.000006Z",
        "table": "shop.orders",
        "op": "insert",
        "xid": None,
        "before": None,
        "after": '{"id":7}',
        "ddl": None,
    }
    assert [row["op"] for row in shown(capsys, "events", landed, "--from", f"{FILE}:200")] == ["delete"]
    assert [row["op"] for row in shown(capsys, "events", landed, "--op", "schema")] == ["schema"]
    assert len(shown(capsys, "events", landed, "--limit", "1")) == 1
    assert shown(capsys, "events", landed, "--table", "shop.other") == []


def test_events_are_a_table_for_people(landed, capsys):
    """Without --json each event is a line."""
    assert execute(["events", landed]) == 0
    out = capsys.readouterr().out
    assert f"1/{FILE}:101" in out
    assert '{"id":7}' in out


def test_the_checkpoint_is_shown(landed, capsys):
    """The global row with its exit point, then the tables."""
    whole, table = shown(capsys, "checkpoint", "show", landed)
    assert (whole["is_global"], whole["binlog_pos"], whole["exit_point_binlog_pos"]) == (True, 200, 300)
    assert (table["cp_table"], table["binlog_pos"], table["delta_version"]) == ("orders", 250, 3)
    assert execute(["checkpoint", "show", landed]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("(global)" in line and f"1/{FILE}:200" in line and f"1/{FILE}:300" in line for line in lines)
    assert any("shop.orders" in line and f"1/{FILE}:250" in line for line in lines)


def test_the_status_names_every_stage(landed, capsys):
    """Where bronze ends, what is applied, what was flushed and why."""
    status = shown(capsys, "status", landed)
    (source,) = status["sources"]
    assert (source["landed_to"], source["applied_to"], source["exit_point"]) == (
        f"1/{FILE}:300",
        f"1/{FILE}:200",
        f"1/{FILE}:300",
    )
    assert (source["flushed_because"], source["relay"]) == ("interval", None)
    assert source["newest_change"] == "2026-01-02T03:04:05Z"  # to the millisecond
    assert [(table["table"], table["applied_to"]) for table in status["tables"]] == [("shop.orders", f"1/{FILE}:250")]


@pytest.mark.parametrize("command", ["events", "checkpoint show"])
def test_before_the_first_run_there_are_no_events_and_no_checkpoint(command, empty, capsys, tmp_path):
    """Reading creates no table and is no error."""
    assert shown(capsys, *command.split(), empty) == []
    assert not (tmp_path / "lakehouse").exists()


def test_before_the_first_run_the_status_is_empty(empty, capsys, tmp_path):
    """The source is listed without any values."""
    status = shown(capsys, "status", empty)
    assert [source["source_id"] for source in status["sources"]] == ["one"]
    assert {key for key, value in status["sources"][0].items() if value not in (None, [])} == {"source_id"}
    assert not (tmp_path / "lakehouse").exists()
