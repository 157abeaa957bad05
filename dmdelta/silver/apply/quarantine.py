"""The quarantine of a silver table: a Delta table with the rows that fail expectations, and the reasons.

It contains each row once, with its newest image. A row leaves the quarantine when the source deletes it, when a newer
image passes, or when an operator releases it.
"""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention
from pyspark.sql import types as T  # noqa: N812 - Spark's convention

from dmdelta.changelog.extraction import keys_of
from dmdelta.changelog.row_text import row_text
from dmdelta.ddl.types.silver_types import COMMITTED_AT, VERSION, silver_type
from dmdelta.lakehouse.history import commits
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.metadata_table import create_metadata
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.lakehouse.tables import UNFINISHED
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.model.spark_sql import literal, quote
from dmdelta.silver.rows.compaction import inserted_rows
from dmdelta.silver.schema.evolution import older_than
from dmdelta.silver.table.target import Target

IMAGE, REASONS = "_dm_image", "_dm_reasons"
"""Columns that `Quarantine.update` takes besides silver's: the image, and the names of the failed expectations; none of
a deleted row."""
ROW_KEY = "_dm_row_key"
_VERSION = T.StructType(
    [T.StructField("epoch", T.IntegerType()), T.StructField("seq", T.LongType()), T.StructField("row", T.IntegerType())]
)
COLUMNS: dict[str, T.DataType] = {
    "row_key": T.StringType(),
    "source_table": T.StringType(),
    "image": T.VariantType(),
    "reasons": T.ArrayType(T.StringType()),
    "structure": T.StringType(),
    VERSION: _VERSION,
    COMMITTED_AT: T.TimestampType(),
    "quarantined_at": T.TimestampType(),
}
_VIEW = "dmdelta_quarantine"


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The quarantine of one silver table. `image` is a row's image in the log, `structure` the table's at that time."""

    target: Target
    place: str

    @classmethod
    def of(cls, target: Target) -> "Quarantine":
        return cls(target, cls.place_of(target.context.lakehouse, target.context.task, target.route.name))

    @staticmethod
    def place_of(lakehouse: Lakehouse, task: str, silver: TableName) -> str:
        """The SQL identifier of the quarantine of a silver table."""
        schema, table = silver
        return lakehouse.metadata(f"{task}_quarantine__{schema}__{table}")

    def version(self, spark: SparkSession) -> int | None:
        """The newest version of the quarantine; None if it does not exist.

        Raises:
            LakehouseError: its history cannot be read.
        """
        newest = next(iter(commits(spark, self.place, 1)), None)
        return None if newest is None or newest.user_metadata == UNFINISHED else newest.version

    def has_changed(self, spark: SparkSession, since: datetime) -> bool:
        """Whether any writer has committed to the quarantine after a time. A batch changes it before silver.

        Raises:
            LakehouseError: its history cannot be read.
        """
        newest = next(iter(commits(spark, self.place, 1)), None)
        return newest is not None and newest.at > since

    def has_rows(self, spark: SparkSession, at: int | None = None) -> bool:
        """Whether the quarantine exists and has rows of the source table.

        Args:
            at: a version of the quarantine; None: the newest one.

        Raises:
            LakehouseError: it cannot be read.
        """
        if at is None and self.version(spark) is None:
            return False
        with wrapped(self.place, "reading"):
            return not self.rows(spark, at).limit(1).isEmpty()

    def structures(self, spark: SparkSession) -> list[TableSchema]:
        """The structures of the source table's quarantined rows in silver. The quarantine table must exist.

        Raises:
            LakehouseError: it cannot be read.
        """
        with wrapped(self.place, "reading"):
            return list(map(TableSchema.from_json, structure_texts(self.rows(spark))))

    def rows(self, spark: SparkSession, at: int | None = None) -> DataFrame:
        """The source table's quarantined rows, at a version or the newest one. The quarantine table must exist."""
        held = spark.table(self.place) if at is None else spark.sql(f"SELECT * FROM {self.place} VERSION AS OF {at}")
        return held.where(self._own)

    def update(self, spark: SparkSession, net: DataFrame, schema: TableSchema) -> None:
        """Quarantine the failing rows of a batch, and remove its other rows from quarantine. Idempotent.

        Args:
            net: the batch's net changes with silver's columns, IMAGE and REASONS.

        Raises:
            CommitConflict, LakehouseError: it cannot be written.
        """
        if not self._create(spark):
            # A new table has no row to replace, and a batch has each key once. After a kill the table exists.
            self._append(net.where(f"size({REASONS}) > 0"), schema)
            return
        self._rows_of(net, schema).createOrReplaceTempView(_VIEW)
        names = ", ".join(map(quote, COLUMNS))
        values = ", ".join(f"source.{quote(name)}" for name in COLUMNS)
        assigned = ", ".join(f"{quote(name)} = source.{quote(name)}" for name in COLUMNS)
        newer = f"target.{VERSION} < source.{VERSION}"
        self._run(
            spark,
            f"""MERGE INTO {self.place} AS target USING {_VIEW} AS source
            ON target.row_key = source.row_key AND target.source_table = source.source_table
            WHEN MATCHED AND {newer} AND size(source.reasons) = 0 THEN DELETE
            WHEN MATCHED AND {newer} THEN UPDATE SET {assigned}
            WHEN NOT MATCHED AND size(source.reasons) > 0 THEN INSERT ({names}) VALUES ({values})""",
        )

    def replace_all(self, spark: SparkSession, failing: DataFrame, schema: TableSchema) -> None:
        """Replace the source table's quarantined rows by those of a snapshot, with the columns that `update` takes.

        Raises:
            CommitConflict, LakehouseError: it cannot be written.
        """
        self._create(spark)
        self.forget(spark)
        self._append(failing, schema)

    def adopt(self, spark: SparkSession, rows: DataFrame) -> None:
        """Add rows of another quarantine, or replace those with the same keys. Idempotent.

        Args:
            rows: with the columns of a quarantine.

        Raises:
            CommitConflict, LakehouseError: it cannot be written.
        """
        self._create(spark)
        rows.createOrReplaceTempView(_VIEW)
        names = ", ".join(map(quote, COLUMNS))
        self._run(
            spark,
            f"""MERGE INTO {self.place} AS target USING (SELECT {names} FROM {_VIEW}) AS source
            ON target.row_key = source.row_key AND target.source_table = source.source_table
            WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
        )

    def forget(self, spark: SparkSession) -> None:
        """Delete the source table's rows from the quarantine.

        Raises:
            CommitConflict, LakehouseError: it cannot be written.
        """
        self._run(spark, f"DELETE FROM {self.place} WHERE {self._own}")

    def clear(self, spark: SparkSession, before: Position) -> None:
        """Delete rows that are older than a statement that empties the table. The quarantine must exist.

        Raises:
            CommitConflict, LakehouseError: it cannot be written.
        """
        self._run(spark, f"DELETE FROM {self.place} WHERE {self._own} AND {older_than(before)}")

    def remove(self, spark: SparkSession, rows: DataFrame) -> None:
        """Delete rows that `silver_rows_of` returned.

        Raises:
            CommitConflict, LakehouseError: it cannot be written.
        """
        rows.select(ROW_KEY, VERSION).createOrReplaceTempView(_VIEW)
        self._run(
            spark,
            f"""MERGE INTO {self.place} AS target USING {_VIEW} AS source ON target.{self._own}
            AND target.row_key = source.{ROW_KEY} AND target.{VERSION} = source.{VERSION} WHEN MATCHED THEN DELETE""",
        )

    def _rows_of(self, net: DataFrame, schema: TableSchema) -> DataFrame:
        return net.selectExpr(
            f"{key_text(schema)} AS row_key",
            f"{literal(str(self.target.shard))} AS source_table",
            f"{IMAGE} AS image",
            f"{REASONS} AS reasons",
            f"{literal(schema.to_json())} AS structure",
            VERSION,
            COMMITTED_AT,
            "current_timestamp() AS quarantined_at",
        )

    def _create(self, spark: SparkSession) -> bool:
        """Create the table if it does not exist; True if it existed."""
        return create_metadata(spark, self.target.context.lakehouse, self.place, COLUMNS, self.target.context.task)

    def _append(self, failing: DataFrame, schema: TableSchema) -> None:
        with wrapped(self.place, "appending to"):
            self._rows_of(failing, schema).writeTo(self.place).append()

    def _run(self, spark: SparkSession, statement: str) -> None:
        with wrapped(self.place, "changing"):
            spark.sql(statement).collect()

    @property
    def _own(self) -> str:
        """The condition (SQL) for the source table's rows."""
        return f"source_table = {literal(str(self.target.shard))}"


def structure_texts(quarantined: DataFrame) -> list[str]:
    """The structures of quarantined rows, each once, as their JSON."""
    return [str(row["structure"]) for row in quarantined.select("structure").distinct().collect()]


def key_text(schema: TableSchema) -> str:
    """The key of a row of silver as a JSON object (SQL)."""
    return row_text({column.name: silver_type(column) for column in keys_of(schema)})


def with_quarantined(
    spark: SparkSession, target: Target, live: DataFrame, schema: TableSchema, at: int | None = None
) -> DataFrame:
    """The rows of a silver table and its quarantined rows: together they are the source's rows.

    Args:
        at: a version of the quarantine; None: the newest one.

    Raises:
        LakehouseError: the quarantine cannot be read.
    """
    quarantine = Quarantine.of(target)
    if not quarantine.has_rows(spark, at):
        return live
    return live.unionByName(silver_rows_of(quarantine.rows(spark, at), schema).select(*map(quote, live.columns)))


def without_quarantined(spark: SparkSession, target: Target, rows: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows of a table without those that are quarantined with the same version.

    Raises:
        LakehouseError: the quarantine cannot be read.
    """
    quarantine = Quarantine.of(target)
    if not quarantine.has_rows(spark):
        return rows
    key, version = "_dm_quarantined_key", "_dm_quarantined_version"
    quarantined = quarantine.rows(spark).select(F.col("row_key").alias(key), F.col(VERSION).alias(version))
    same = (F.expr(key_text(schema)) == F.col(key)) & (F.col(VERSION) == F.col(version))
    return rows.join(quarantined, same, "left_anti")


def silver_rows_of(quarantined: DataFrame, schema: TableSchema) -> DataFrame:
    """Rows of a quarantine with the silver table's columns and ROW_KEY."""
    flat = quarantined.selectExpr(
        f"row_key AS {ROW_KEY}",
        "image AS after",
        *(f"{VERSION}.{part} AS {part}" for part in ("epoch", "seq", "row")),
        f"{COMMITTED_AT} AS committed_at",
    )
    return inserted_rows(flat, schema, ROW_KEY)
