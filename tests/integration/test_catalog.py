"""A lakehouse in a catalog: table names have three parts, and missing schemas are created."""

from collections.abc import Iterator

import pytest
import yaml
from pyspark.sql import SparkSession

from dmdelta.lakehouse.layout import Lakehouse
from tests.support.diff import assert_same
from tests.support.servers import Server
from tests.support.task import Task

CATALOG = "spark_catalog"


class CatalogTask(Task):
    """A task whose tables are in Spark's own catalog, in schemas of the test's own."""

    def write_spec(self):
        path = super().write_spec()
        spec = yaml.safe_load(path.read_text())
        spec["lakehouse"] = {"catalog": CATALOG, "bronze": f"b_{self.database}", "metadata": f"m_{self.database}"}
        path.write_text(yaml.safe_dump(spec))
        return path

    @property
    def lakehouse(self) -> Lakehouse:
        return Lakehouse(catalog=CATALOG, bronze_name=f"b_{self.database}", metadata_name=f"m_{self.database}")


@pytest.fixture
def task(mysql80: Server, spark: SparkSession, tmp_path) -> Iterator[CatalogTask]:
    database = mysql80.fresh_database("named")
    made = CatalogTask(tmp_path, mysql80, database, mode="all")
    made.start_here()
    yield made
    for name in (database, f"b_{database}", f"m_{database}"):
        spark.sql(f"DROP SCHEMA IF EXISTS {CATALOG}.{name} CASCADE")


def test_a_task_in_a_catalog(task, spark):
    """A full load, every kind of change, a changed structure, and a second run that resumes."""
    server, database = task.server, task.database
    server.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20))",
        "CREATE TABLE plain (a INT)",
        "INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'three')",
        "INSERT INTO plain VALUES (1), (1)",
        database=database,
    )
    task.catch_up()
    server.execute(
        "UPDATE t SET a = 'TWO' WHERE id = 2",
        "DELETE FROM t WHERE id = 3",
        "ALTER TABLE t ADD n INT",
        "INSERT INTO t VALUES (4, 'four', 4)",
        "DELETE FROM plain LIMIT 1",
        database=database,
    )
    task.catch_up()
    assert_same(server, database, ["t", "plain"], lambda table: spark.table(f"{CATALOG}.{database}.{table}"))
    assert spark.table(task.lakehouse.bronze).where("op = 'update'").count() == 1
    assert not task.root.exists()
