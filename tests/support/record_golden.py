"""Records the small binlogs of tests/golden/binlog from real servers: `python -m tests.support.record_golden`.

One folder per server: binlog files with many kinds of events, and `tables.json`, the final tables as the server SELECTs
them (with their structure if table maps have no column names). The unit tests replay the files and compare the tables.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.event_scenarios import SHARED, play, scenarios_of
from tests.support.golden import GOLDEN, canonical, known_schemas
from tests.support.recording import record
from tests.support.servers import Server, running
from tests.support.type_families import SQL_MODE, TIME_ZONE
from tests.support.values import source_columns, source_rows

_TOO_LONG = {"compressed_bulk", "several_row_events"}
_NEEDS_NAMES = {"added_column", "create_select", "odd_names"}
"""Scenarios whose tables have several structures, or names that are only in the log's metadata."""
_INTEGERS = [
    f"{name} {sign}" for name in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT") for sign in ("", "UNSIGNED")
]
_TYPES = [
    *((kind, ("0", "1", "127", "77")) for kind in _INTEGERS),
    ("DECIMAL(10,4)", ("0", "-123456.7891", "999999.9999", "0.0001")),
    ("DECIMAL(65,30)", ("0", "-" + "9" * 35 + "." + "9" * 30, "1.5", "0." + "0" * 29 + "1")),
    ("DECIMAL(38,10)", ("-0.0000000001", "9999999999999999999999999999.9999999999", "1", "0")),
    ("FLOAT", ("0", "-1.5", "3.25e10", "1e-20")),
    ("DOUBLE", ("0", "-1.1", "1e300", "5e-324")),
    ("BIT(1)", ("b'0'", "b'1'", "b'1'", "b'0'")),
    ("BIT(64)", ("0", "18446744073709551615", "1", "255")),
    ("YEAR", ("0", "1901", "2155", "2024")),
    ("DATE", ("'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2024-02-00'")),
    ("TIME(6)", ("'-838:59:59'", "'838:59:59'", "'-00:00:00.000001'", "'12:34:56.789'")),
    ("TIME", ("'-01:02:03'", "'0'", "'100:00:00'", "'23:59:59'")),
    ("DATETIME(6)", ("'0000-00-00'", "'1000-01-01'", "'9999-12-31 23:59:59.999999'", "'2024-02-29 12:00:00.5'")),
    ("DATETIME", ("'2024-01-01 00:00:00'", "'0001-01-01'", "'2000-00-01'", "'1999-12-31 23:59:59'")),
    ("TIMESTAMP(3) NULL", ("'0000-00-00'", "'1970-01-02 00:00:00.001'", "'2038-01-18 03:14:07.999'", "'2024-06-01'")),
    ("CHAR(10) CHARACTER SET utf8mb4", ("''", "'abc'", "'Zoë'", "0xF09F9880")),
    ("VARCHAR(300) CHARACTER SET latin1", ("''", "REPEAT('é', 90)", "'x'", "0x8081")),
    ("VARCHAR(20) CHARACTER SET gbk", ("''", "0xCAFDBEDDBFE2", "'a'", "'ab'")),
    ("VARCHAR(20) CHARACTER SET utf16", ("''", "'a'", "_utf8mb4 0xF09F9880", "_utf8mb4 0xE695B0")),
    ("TEXT CHARACTER SET utf8mb4", ("''", "REPEAT('y', 300)", "'é'", "'z'")),
    ("BINARY(8)", ("''", "0x00FF00", "0x0102030405060708", "'a'")),
    ("VARBINARY(300)", ("''", "0x00FF00", "REPEAT(0xFE, 300)", "'a'")),
    ("MEDIUMBLOB", ("''", "0x00FF00", "'b'", "REPEAT(0x01, 70)")),
    ("ENUM('a','é','c,d')", ("'a'", "'é'", "'c,d'", "0")),
    ("SET('x','y','ü')", ("''", "'x'", "'x,y,ü'", "'y'")),
    ("GEOMETRY", ("NULL", "ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('LINESTRING(0 0,1 1)')", "NULL")),
]
_JSON = (
    """'{"b": [1, -70000, 3000000000, 1e3, true, null, "é"], "a": {"aa": {}}, "empty": []}'""",
    "'null'",
    "JSON_OBJECT('d', CAST('2024-02-29' AS DATE), 't', CAST('-01:02:03.5' AS TIME(6)), 'dec', 12.50, 'u', 18446744073709551615)",
    "'\"text\"'",
)


def record_server(name: str) -> None:
    """Record one server into its folder."""
    folder = GOLDEN / name
    shutil.rmtree(folder, ignore_errors=True)
    with running(name) as server, tempfile.TemporaryDirectory() as place:
        database = "golden"
        server.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        tables = _write_types(server, database)
        server.execute(*SHARED, "FLUSH BINARY LOGS", database=database)
        for scenario in scenarios_of(name):
            if scenario.name in _TOO_LONG or (name == "mysql57" and scenario.name in _NEEDS_NAMES):
                continue
            play(server, database, scenario.first)
            play(server, database, scenario.second)
            tables += [table for table in scenario.tables if table not in tables]
        archive = record(server, Path(place) / "archive")
        shutil.copytree(archive, folder)
        facts = {"version": server.version, "schema": database, "tables": {}, "known": []}
        for table in tables:
            columns, keys = source_columns(server, database, table)
            rows = source_rows(server, database, table, columns, keep_odd=True)
            facts["tables"][table] = {
                "keys": keys,
                "columns": [[column.name, column.type] for column in columns],
                "rows": sorted(([canonical(value) for value in row] for row in rows), key=repr),
            }
        if name == "mysql57":
            facts["known"] = [schema.to_json() for schema in known_schemas(server, database)]
        (folder / "tables.json").write_text(json.dumps(facts, ensure_ascii=False, indent=0))


def _write_types(server: Server, database: str) -> list[str]:
    """Write a table with every type: three kinds of changes of four rows."""
    types = list(_TYPES)
    if server.flavor == "mysql":
        types.append(("JSON", _JSON))
    if server.name == "mysql97":
        types.append(("VECTOR(3)", ("TO_VECTOR('[1,2.5,-3]')", "NULL", "TO_VECTOR('[0,0,0]')", "NULL")))
    names = [f"c{number:02d}" for number in range(len(types))]
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in zip(names, types, strict=True))
    rows = ", ".join(f"({row}, {', '.join(values[row] for _, values in types)})" for row in range(4))
    server.execute(
        f"SET sql_mode = '{SQL_MODE}'",
        f"SET time_zone = '{TIME_ZONE}'",
        f"CREATE TABLE types (id INT PRIMARY KEY, {columns})",
        f"INSERT INTO types VALUES {rows}",
        "INSERT INTO types (id) VALUES (4)",
        f"UPDATE types SET id = id + 10, {', '.join(f'{name} = NULL' for name in names[::2])} WHERE id IN (1, 4)",
        "DELETE FROM types WHERE id = 2",
        database=database,
    )
    return ["types"]


if __name__ == "__main__":
    for chosen in sys.argv[1:] or ("mysql80", "mysql57", "mysql97", "mariadb"):
        record_server(chosen)
