"""`quality --replay` over the DDL suite's tables: exactly the violations planted in a range are found in it."""

import json
import random
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from tests.integration.test_ddl_suite import read_cases
from tests.support.task import Task

AWAY = 1_000_000
"""The key of a row with a violation is moved by this, until the end of the range."""
NAMES = (
    "add column",
    "drop column",
    "widen int to bigint",
    "add column first",
    "add column with a default",
    "add two columns at once",
    "drop two columns",
    "drop and add under the same name",
    "rename column by change",
    "swap two columns' names",
    "rename in a circle",
    "change a name's case",
    "move columns about",
    "widen tinyint step by step",
    "widen decimal",
    "float to double",
    "narrow bigint to int",
    "int to varchar",
    "date to datetime",
    "unsigned comes",
    "enum's members change order",
    "set gets a member",
    "nullable becomes not null",
    "indexes come and go",
)
EXPECTED = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "id", "max_value": AWAY}}


def plant(server, database, rng):
    """Move the keys of some rows away; their new keys."""
    server.execute("INSERT INTO other VALUES (1)", database=database)  # a range is never empty
    ids = [row[0] for row in server.query("SELECT id FROM t ORDER BY id", database=database)]
    chosen = rng.sample(ids, rng.randint(0, len(ids)))
    for number in chosen:
        server.execute(f"UPDATE t SET id = {number + AWAY} WHERE id = {number}", database=database)
    return sorted(number + AWAY for number in chosen)


def place(server):
    file, offset, _ = server.position()
    return f"{file}:{offset}"


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("server", "names"), [("mysql80", NAMES), ("mariadb", NAMES[:4])])
def test_exactly_what_was_planted_is_found(server, names, request, spark, tmp_path: Path, capsys):
    """A seeded range of each table, before, across or after its DDL, with the violations at the end of the range."""
    source, rng = request.getfixturevalue(server), random.Random(30)
    prefix = source.fresh_database("ranges")
    task = Task(tmp_path, source, f"{prefix}_*")
    task.settings["quality"] = {"schemas": str(tmp_path / "schemas")}
    cases = {case.name: case for case in read_cases()}
    task.start_here()
    ranges = {}
    for number, name in enumerate(names):
        database, case = f"{prefix}_{number:02d}", cases[name]
        source.execute(f"CREATE DATABASE {database}")
        suite = tmp_path / "schemas" / database / "t.yml"
        suite.parent.mkdir(parents=True)
        suite.write_text(yaml.safe_dump({"expectations": [EXPECTED]}))
        source.execute("CREATE TABLE other (id INT)", *case.before.split("; "), database=database)
        places, planted = [place(source)], {}
        when = rng.choice(["before", "behind"])
        for moment in ("before", "behind"):
            if moment == "behind":
                source.execute(*case.ddl.split("; "), *filter(None, case.after.split("; ")), database=database)
            planted[moment] = plant(source, database, rng)
            places.append(place(source))
            source.execute(f"UPDATE t SET id = id - {AWAY} WHERE id > {AWAY}", database=database)
            places.append(place(source))
        end = 1 if when == "before" else 3
        ranges[database] = (places[rng.randrange(end)], places[end], planted[when])
    task.catch_up()
    found = {}
    for database, (begin, end, planted) in ranges.items():
        capsys.readouterr()
        with task.environment():
            arguments = ("--replay", f"--table={database}.t", f"--from={begin}", f"--to={end}", "--json")
            ended = execute(["quality", str(task.spec), *arguments])
        out, err = capsys.readouterr()
        assert out, err
        lines = json.loads(out)
        failing = [line for line in lines if not line["success"] and line["expectation"] != "freshness"]
        assert (ended, len(failing)) == ((6, 1) if planted else (0, 0)), (database, lines)
        found[database] = sorted(sample["id"] for line in failing for sample in line["samples"])
    assert found == {database: planted for database, (_, _, planted) in ranges.items()}
    assert any(found.values())
