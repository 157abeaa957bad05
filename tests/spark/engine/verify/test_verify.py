"""`dmdelta verify` over recorded binlogs: no differences, uncovered values are reported, and each damage is found."""

import json

import pytest

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.golden import SERVERS, recording
from tests.support.verifying import NOT_COVERED, land_recordings, logged_events


@pytest.fixture(scope="module")
def landed(spark, tmp_path_factory):
    """The spec of a task with all recordings in bronze, and bronze itself."""
    folder = tmp_path_factory.mktemp("golden")
    spec = land_recordings(folder, SERVERS)
    bronze = Lakehouse(root=str(folder / "lakehouse")).bronze
    spark.sql(f"ALTER TABLE {bronze} SET TBLPROPERTIES ('delta.appendOnly' = 'false')")
    return spec, bronze


def verify(capsys, spec, *arguments, code=0):
    """The results, by source."""
    capsys.readouterr()
    ended = execute(["verify", str(spec), *arguments])
    out, err = capsys.readouterr()
    assert ended == code, (out + err)[-4000:]
    return {one["source"]: one for one in json.loads(out)} if "--json" in arguments else out + err


def test_recorded_binlogs_do_not_differ(landed, spark, capsys):
    """Every changed table is compared; only values that mysql-replication cannot read are not covered."""
    spec, bronze = landed
    found = verify(capsys, spec, "--json")
    assert list(found) == list(SERVERS)
    for name, one in found.items():
        assert one["differences"] == []
        assert [table["table"] for table in one["tables"] if table["differences"]] == []
        missed = {
            (table["table"].partition(".")[2], left["reason"]): (left["events"], left["rows"], left["values"])
            for table in one["tables"]
            for left in table["not_covered"]
        }
        assert missed == NOT_COVERED[name]
        changes = spark.table(bronze).where(f"source_id = '{name}' AND op IN ('insert', 'update', 'delete')")
        rows = sum(table["rows"] + sum(left["rows"] for left in table["not_covered"]) for table in one["tables"])
        assert rows == changes.count()
        assert {table["table"] for table in one["tables"]} == {
            f"{row.schema_name}.{row.table_name}"
            for row in changes.select("schema_name", "table_name").distinct().collect()
        }
        (part,) = one["ranges"]
        assert (part["begin"], part["read_from"]) == ("1/binlog.000001:4", "archive")


def test_ranges_tables_and_sources_are_selected(landed, capsys):
    """Only the requested part is read; a place requires its source, and a table must exist."""
    spec, _ = landed
    ends = ("--from", "binlog.000002:4", "--to", "binlog.000003:4")
    whole = verify(capsys, spec, "--json", "--source=mariadb")["mariadb"]
    part = verify(capsys, spec, "--json", "--source=mariadb", "--table=golden.ch*", *ends)["mariadb"]
    (read,) = part["ranges"]
    assert read["begin"] == "1/binlog.000002:4"
    assert read["end"].startswith("1/binlog.000002:")  # its end
    assert [table["table"] for table in part["tables"]] == ["golden.changes"]
    (changes,) = [table for table in whole["tables"] if table["table"] == "golden.changes"]
    assert 0 < part["tables"][0]["rows"] < changes["rows"]
    assert part["tables"][0]["not_covered"] == changes["not_covered"]
    assert "--source" in verify(capsys, spec, *ends, code=2)
    assert "no_such" in verify(capsys, spec, "--source=mysql80", "--table=golden.no_such", code=2)


def test_one_value_one_row_and_one_event_are_found(landed, spark, capsys):
    """Damage to bronze, one kind for each source: exit code 6; exactly the damage is reported, without values."""
    spec, bronze = landed
    place = {}
    for name in ("mysql80", "mysql57", "mariadb"):
        events = logged_events(recording(name))
        inserts = (one for one in events if one.table == ("golden", "changes") and one.op == "insert")
        place[name] = next(one.place for one in inserts if one.unread is None and len(one.rows or ()) > 1)

    def at(name):
        file, offset = place[name]
        return f"source_id = '{name}' AND binlog_file = '{file}' AND binlog_pos = {offset}"

    others = "map_filter(CAST(after AS MAP<STRING, VARIANT>), (name, value) -> name <> 'id')"
    image = f"map_concat({others}, map('id', CAST(4711 AS VARIANT)))"
    spark.sql(f"UPDATE {bronze} SET after = to_variant_object({image}) WHERE {at('mysql80')} AND row = 1")
    spark.sql(f"DELETE FROM {bronze} WHERE {at('mysql57')} AND row = 0")
    spark.sql(f"DELETE FROM {bronze} WHERE {at('mariadb')}")

    found = verify(capsys, spec, "--json", code=6)
    differences = [
        (one["source"], one["position"], one["table"], one["op"], one["row"], one["columns"])
        for source in found.values()
        for one in source["differences"]
    ]
    place = {name: f"1/{file}:{offset}" for name, (file, offset) in place.items()}
    assert differences == [
        ("mysql80", place["mysql80"], "golden.changes", "insert", 1, ["after.id"]),
        ("mysql57", place["mysql57"], "golden.changes", "insert", 0, []),
        ("mariadb", place["mariadb"], "golden.changes", "insert", None, []),
    ]
    said = verify(capsys, spec, code=6)
    assert place["mysql80"] in said
    assert "after.id" in said
    assert "4711" not in said.replace(place["mysql80"], "")
