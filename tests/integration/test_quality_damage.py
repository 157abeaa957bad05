"""Expectations find damage: each finds exactly the rows that were damaged in its way."""

import json
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.damage import damage, rows_to_damage
from tests.support.loadable import fill
from tests.support.task import Task
from tests.support.type_families import TIME_ZONE


def between(column, least, most):
    return {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": column, "min_value": least, "max_value": most},
    }


def among(column, *values):
    return {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": column, "value_set": list(values)}}


def none_with(condition):
    return {
        "type": "unexpected_rows_expectation",
        "kwargs": {"unexpected_rows_query": f"SELECT id FROM {{batch}} WHERE {condition}"},
    }


EXPECTED = {
    "a whole number": none_with("k <> id"),
    "an unsigned number": none_with("u <> 18446744073709551615"),
    "a float": between("f", 1.25, 1.25),
    "a double": none_with("d <> -2.5e200"),
    "a truncated decimal": none_with("p <> -123456789.125"),
    "a text": among("t", "grün 🌱"),
    "a wrong charset": among("l", "ÿes"),
    "bytes": none_with("b <> X'00FF'"),
    "swapped columns": among("w", "weit"),
    "a shifted time zone": none_with(f"stamp <> TIMESTAMP'2026-11-21 08:30:15.5{TIME_ZONE}'"),
    "a microsecond": none_with("at <> TIMESTAMP_NTZ'2026-11-21 08:30:15.000007'"),
    "a day": none_with("day <> DATE'2026-11-21'"),
    "a year": between("y", 2026, 2026),
    "an enum": among("e", "öff"),
    "a document": none_with("replace(CAST(j AS STRING), ' ', '') NOT IN ('{{\"a\":[1,null]}}', 'null')"),
    "a NULL": none_with("t IS NULL AND y IS NOT NULL"),
    "an empty text for NULL": {
        "type": "expect_column_value_lengths_to_be_between",
        "kwargs": {"column": "t", "min_value": 1},
    },
    "a row of nobody": between("id", 1, None),
}
"""The expectation that finds each damage of `tests.support.damage`; a lost and a duplicate row need none here."""
ALSO = {
    "a whole number": ("a row of nobody",),
    "a text": ("swapped columns", "an empty text for NULL"),
}
"""Other damage that the same expectation finds."""
TYPES = {expectation["type"] for expectation in EXPECTED.values()}


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("server", ["mysql80", "mariadb"])
def test_each_damage_is_found_by_its_expectation(server, request, spark, tmp_path: Path, capsys):
    """All types: nothing fails until silver is damaged; then each expectation finds its rows, with exact counts."""
    source = request.getfixturevalue(server)
    task = Task(tmp_path, source, source.fresh_database("quality"), mode="all")
    suite = tmp_path / "schemas" / task.database / "big.yml"
    suite.parent.mkdir(parents=True)
    suite.write_text(yaml.safe_dump({"key": ["id"], "expectations": list(EXPECTED.values())}))
    task.settings["quality"] = {"schemas": str(tmp_path / "schemas")}
    fill(source, task.database, 3_000)
    source.execute("UPDATE big SET k = id", database=task.database)
    task.catch_up()
    source.execute("UPDATE big SET k = -1 WHERE id = 4", database=task.database)
    source.execute("UPDATE big SET k = 4 WHERE id = 4", database=task.database)
    task.catch_up()
    good = judged(task, capsys)
    assert [(line["table"], line["expectation"], line["note"]) for line in good if not line["success"]] == []

    big = Lakehouse(root=str(task.root)).silver(task.database, "big")
    ids = rows_to_damage(spark, big)
    damage(spark, big, ids)
    lines = judged(task, capsys, f"--table={task.database}.big", code=6)
    found = dict(zip(EXPECTED, [line for line in lines if line["expectation"].split("(")[0] in TYPES], strict=True))
    for what, line in found.items():
        wanted = {ids[each] for each in (what, *ALSO.get(what, ()))}
        assert {abs(sample["id"]) for sample in line["samples"]} == wanted, what
        assert line["unexpected"] == len(wanted), what
    doubled = next(line for line in lines if line["expectation"] == "key is unique")
    assert doubled["samples"] == [{"id": ids["a doubled row"]}]
    ranged = judged(task, capsys, f"--table={task.database}.big", "--last=1", code=6)
    count = next(line for line in ranged if line["expectation"] == "row count")
    assert not count["success"]


def judged(task, capsys, *arguments, code=0):
    """What the evaluation has found."""
    capsys.readouterr()
    with task.environment():
        ended = execute(["quality", str(task.spec), "--json", *arguments])
    lines = json.loads(capsys.readouterr().out)
    assert ended == code, [line for line in lines if not line["success"]]
    return lines
