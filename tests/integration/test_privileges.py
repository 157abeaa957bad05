"""The privileges in docs/first-pipeline.md suffice, at the source and at the target; missing ones are reported."""

import re
from pathlib import Path

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.config import SinkConfig
from dmdelta.engine.task.risks import SelectedTables
from dmdelta.engine.task.target_checks import check_target
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.sink.target.preflight import ON_METADATA, ON_TABLES
from dmdelta.source.preflight.finding import Level
from tests.support.diff import assert_same
from tests.support.sinking import table_differences
from tests.support.task import SinkTask

PAGE = Path(__file__).parents[2] / "docs" / "first-pipeline.md"
TABLES = ("keyed", "keyless")


class LeastTask(SinkTask):
    """A task whose accounts have the page's privileges and no others."""

    def write_spec(self):
        path = super().write_spec()
        spec = yaml.safe_load(path.read_text())
        spec["sources"][0]["user"] = "dmdelta_least"
        spec["sink"] |= {"user": "feed_least", "password": self.target.password}
        path.write_text(yaml.safe_dump(spec))
        return path


def grants(account, database, metadata):
    """The page's GRANT statements for an account, on a test's schemas."""
    found = [line for line in re.findall(r"^GRANT .*;$", PAGE.read_text(), re.MULTILINE) if f"'{account}'@" in line]
    assert found
    placed = [line.replace(" shop.*", f" {database}.*").replace(" dm_meta.*", f" {metadata}.*") for line in found]
    return [line.replace(account, f"{account}_least") for line in placed]


def without(grant, right):
    rights, on, rest = grant.removeprefix("GRANT ").partition(" ON ")
    return f"GRANT {', '.join(one for one in rights.split(', ') if one != right)}{on}{rest}"


def allow(server, account, statements):
    server.execute(
        f"DROP USER IF EXISTS '{account}'@'%'", f"CREATE USER '{account}'@'%' IDENTIFIED BY '{server.password}'"
    )
    server.execute(*statements)


@pytest.fixture(
    params=["mysql80", pytest.param("mysql57", marks=pytest.mark.long), pytest.param("mariadb", marks=pytest.mark.long)]
)
def task(request, mysql80, mariadb, tmp_path):
    server = request.getfixturevalue(request.param)
    target = mysql80 if request.param == "mariadb" else mariadb
    database = server.fresh_database("least")
    made = LeastTask(tmp_path, server, database, mode="all", target=target, sink={"metadata": f"dm_{database}"})
    server.execute(
        "CREATE TABLE keyed (id INT PRIMARY KEY, a VARCHAR(9), n INT)",
        "CREATE TABLE keyless (n INT, a VARCHAR(9))",
        "INSERT INTO keyed VALUES (1, 'a', 1), (2, 'b', 2)",
        "INSERT INTO keyless VALUES (1, 'x'), (1, 'x')",
        database=database,
    )
    allow(server, "dmdelta_least", grants("dmdelta", database, made.sink["metadata"]))
    allow(target, "feed_least", grants("feed", database, made.sink["metadata"]))
    return made


def test_the_documented_privileges_suffice(task, spark, capsys):
    """A full load, the log with DDL statements, a target that is created from scratch, and a comparison of all."""
    task.write_spec()
    with task.environment():
        assert execute(["check", str(task.spec)]) == 0, capsys.readouterr().out
    task.catch_up()
    task.server.execute(
        "UPDATE keyed SET a = 'c' WHERE id = 1",
        "DELETE FROM keyless LIMIT 1",
        "ALTER TABLE keyed ADD COLUMN more INT DEFAULT 4, ADD INDEX by_n (n)",
        "INSERT INTO keyed VALUES (3, 'd', 3, 3)",
        "TRUNCATE TABLE keyless",
        "INSERT INTO keyless VALUES (7, 'z')",
        "CREATE TABLE moved LIKE keyed",
        "RENAME TABLE moved TO gone",
        "DROP TABLE gone",
        database=task.database,
    )
    task.catch_up()
    lakehouse = Lakehouse(root=str(task.root))
    assert_same(task.server, task.database, TABLES, lambda table: spark.table(lakehouse.silver(task.database, table)))
    for table in TABLES:
        assert table_differences(task.server, task.target, task.database, table) == []
    with task.environment():
        assert execute(["validate", str(task.spec)]) == 0


@pytest.mark.parametrize("lacking", ON_TABLES)
def test_a_privilege_missing_at_the_target_is_named(mysql80_too, lacking):
    """`check` reports it for the page's account without one privilege on the target's schema; granting it is enough."""
    database = mysql80_too.fresh_database("least")
    tables, metadata = grants("feed", database, f"dm_{database}")
    lacks_only(mysql80_too, database, [without(tables, lacking), metadata], f"GRANT {lacking} ON `{database}`.*")


@pytest.mark.parametrize("lacking", ON_METADATA)
def test_a_privilege_missing_on_the_sinks_metadata_is_named(mysql80_too, lacking):
    """`check` reports it for the page's account without one privilege on the schema of the sink's own tables."""
    database = mysql80_too.fresh_database("least")
    tables, metadata = grants("feed", database, f"dm_{database}")
    lacks_only(mysql80_too, database, [tables, without(metadata, lacking)], f"GRANT {lacking} ON `dm_{database}`.*")


def lacks_only(server, database, granted, statement):
    """There is one failing finding; its statement, executed unchanged, makes the target pass."""
    allow(server, "feed_least", granted)
    sink = SinkConfig(
        kind="mysql",
        host=server.host,
        port=server.port,
        user="feed_least",
        password=server.password,
        metadata=f"dm_{database}",
    )
    selected = SelectedTables({("s1", (database, "t")): (database, "t")})
    (found,) = [one for one in check_target(sink, selected).findings if one.level is Level.FAIL]
    assert found.fix == f"{statement} TO 'feed_least'@'%'"
    server.execute(found.fix)
    assert not [one for one in check_target(sink, selected).findings if one.level is Level.FAIL]


@pytest.mark.parametrize("lacking", ["REPLICATION SLAVE", "REPLICATION CLIENT", "SELECT", "LOCK TABLES"])
def test_a_missing_privilege_is_named(mysql80, tmp_path, capsys, lacking):
    """By `dmdelta check`, each with the statement that grants it."""
    database = mysql80.fresh_database("least")
    task = LeastTask(tmp_path, mysql80, database, mode="all", target=mysql80, sink={"metadata": f"dm_{database}"})
    mysql80.execute("CREATE TABLE keyless (n INT)", database=database)
    fewer = [without(line, lacking) for line in grants("dmdelta", database, "dm")]
    allow(mysql80, "dmdelta_least", fewer)
    allow(mysql80, "feed_least", grants("feed", database, f"dm_{database}"))
    task.write_spec()
    with task.environment():
        assert execute(["check", str(task.spec)]) != 0
    assert f"GRANT {lacking}" in " ".join(capsys.readouterr().out.split())
