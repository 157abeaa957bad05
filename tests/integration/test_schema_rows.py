"""Bronze has one row for each structure of a table, however many segments, batches and runs its log has."""

import shutil

import pytest

from dmdelta.bronze.progress import newest_landed
from dmdelta.changelog.context import SourceContext
from dmdelta.lakehouse.session import is_provided
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.schema import TableSchema
from dmdelta.rules import NO_RULES
from dmdelta.silver.schema.earlier import EarlierStructures
from dmdelta.silver.schema.range_profile import structure_before
from tests.support.pipeline import TASK, Pipeline
from tests.support.recording import record

SOURCE = "one"


class Log:
    """The log of a database, landed and applied batch by batch."""

    def __init__(self, server, flavor, spark, folder):
        self.server, self.flavor, self.archive = server, flavor, folder / "archive"
        self.database = server.fresh_database("structured")
        self.pipeline = Pipeline(spark, folder / "lake")
        self.source = SourceContext(self.pipeline.lakehouse, TASK, SOURCE, "test", flavor, NO_RULES)

    def catch_up(self, *writes):
        """Each statement is in a segment of its own; all of them are one batch."""
        for write in writes:
            self.server.execute(write, database=self.database)
            record(self.server, self.archive)
        self.pipeline.catch_up(self.archive, SOURCE, [self.database], self.flavor)

    def structures(self):
        """The tables and columns of the `schema` rows in order."""
        rows = self.pipeline.bronze(SOURCE).where("op = 'schema'").orderBy("seq").collect()
        found = [TableSchema.from_json(row.ddl) for row in rows]
        return [(schema.table, [column.name for column in schema.columns]) for schema in found]

    def restart(self):
        """Continue with the structures that bronze has."""
        spark, end = self.pipeline.spark, newest_landed(self.pipeline.spark, self.source).end
        earlier, recorded = EarlierStructures(spark, self.source, end), self.pipeline.recorded[SOURCE]
        assert earlier.versions() == recorded.versions
        for name in recorded.versions:
            assert earlier.before(name) == structure_before(spark, self.source.lakehouse, SOURCE, name, end)
        self.pipeline.recorded[SOURCE] = RecordedStructures(end.epoch, earlier.versions())

    def differences(self, *tables):
        return [self.pipeline.differences(self.server, self.database, table) for table in tables]


@pytest.mark.skipif(is_provided(), reason="several tasks decode a batch, and each records its structures")
@pytest.mark.parametrize(
    ("server", "flavor"), [("mysql80", "mysql"), pytest.param("mariadb", "mariadb", marks=pytest.mark.long)]
)
def test_one_row_per_structure(server, flavor, request, spark, tmp_path):
    """Over batches and restarts. After a statement on a table, its structure is recorded again with its next rows."""
    log = Log(request.getfixturevalue(server), flavor, spark, tmp_path)
    log.catch_up(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))",
        "CREATE TABLE u (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO u VALUES (1)",
        "UPDATE t SET v = 'c' WHERE id = 1",
    )
    expected = [("t", ["id", "v"]), ("u", ["id"])]
    assert log.structures() == expected
    log.catch_up("INSERT INTO u VALUES (2)", "DELETE FROM t WHERE id = 2")
    log.restart()
    log.catch_up(
        "INSERT INTO t VALUES (3, 'd')", "ALTER TABLE t ADD w INT DEFAULT 5", "INSERT INTO t VALUES (4, 'e', 6)"
    )
    expected.append(("t", ["id", "v", "w"]))
    assert log.structures() == expected
    log.restart()
    log.catch_up("UPDATE t SET w = 7", "INSERT INTO u VALUES (3)")
    log.catch_up("RENAME TABLE u TO x", "INSERT INTO x VALUES (4)", "INSERT INTO t VALUES (5, 'f', 8)")
    expected.append(("x", ["id"]))
    assert log.structures() == expected
    assert log.differences("t", "x") == [[], []]

    # A silver table that is missing is created for rows whose structure is in an earlier batch.
    shutil.rmtree(tmp_path / "lake" / "silver" / log.database / "x")
    log.catch_up("INSERT INTO x VALUES (5)")
    assert log.structures() == expected
    assert [row.id for row in log.pipeline.silver(log.database, "x").collect()] == [5]
