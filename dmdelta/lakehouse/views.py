"""Views in a catalog, with the task that owns them."""

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dmdelta.errors import ForeignTable
from dmdelta.lakehouse.spark_errors import is_absent, wrapped
from dmdelta.lakehouse.tables import OWNER
from dmdelta.model.spark_sql import literal


def assert_owned_view(spark: SparkSession, view: str, task: str) -> None:
    """Check that a name is free, or that of a view of the task.

    Raises:
        ForeignTable: something else has the name.
        LakehouseError: the catalog cannot be read.
    """
    with wrapped(view, "reading the properties of"):
        try:
            properties: dict[str, str] = dict(spark.sql(f"SHOW TBLPROPERTIES {view}").collect())
        except AnalysisException as error:
            if is_absent(error):
                return
            raise
    if properties.get(OWNER) != task:
        raise ForeignTable(f"{view} exists, and the task did not create it", hint="rename it, or remove live.views")


def replace_view(spark: SparkSession, view: str, query: str, task: str) -> None:
    """Create or replace a view.

    Raises:
        LakehouseError: the catalog does not create it.
    """
    with wrapped(view, "creating the view"):
        spark.sql(f"CREATE OR REPLACE VIEW {view} TBLPROPERTIES ({literal(OWNER)} = {literal(task)}) AS\n{query}")


def drop_view(spark: SparkSession, view: str) -> None:
    """Drop a view if it exists.

    Raises:
        LakehouseError: the catalog does not drop it.
    """
    with wrapped(view, "dropping the view"):
        spark.sql(f"DROP VIEW IF EXISTS {view}")
