"""Repair a silver table: replace, add and delete the rows that differ from the expected ones, and no others.

The expected rows are a frame with silver's columns. A repair commit has its own transaction application and records the
table's current position, so the task resumes where it would without the repair.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.ranges import IS_CHANGE, not_before, of_source, of_table
from dmdelta.changelog.row_keys import of_alias, same_key, same_key_of, without_keys
from dmdelta.ddl.types.silver_types import VERSION, silver_columns
from dmdelta.errors import QualityError
from dmdelta.lakehouse.commits import CommitTag, OwnCommit, merge, overwrite, replace_using, replace_where
from dmdelta.lakehouse.history import newest_own_commit, own_commits
from dmdelta.lakehouse.maintenance.positions import REPAIR
from dmdelta.lakehouse.session import can_replace
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.apply.quarantine import Quarantine
from dmdelta.silver.apply.request import leaves_whole
from dmdelta.silver.rows.keyless import identity
from dmdelta.silver.table.state import silver_state
from dmdelta.silver.table.table import restore_clustering
from dmdelta.silver.table.target import Target

GONE = "_dm_gone"
"""The flag of a row that must be deleted; only its key matters."""
FOUND = "_dm_found"
"""The flag of a row whose key exists in silver."""
_VIEW = "dmdelta_repaired"
PART_SECONDS = 30.0
"""How long, in seconds, to wait for the last commit of a range."""
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Damage:
    """The numbers of rows that differ from the expected ones.

    Attributes:
        missing: rows that silver lacks.
        different: rows with another value or an older version, and duplicates.
        extra: rows that the source does not have.
    """

    missing: int = 0
    different: int = 0
    extra: int = 0

    def __bool__(self) -> bool:
        return bool(self.missing or self.different or self.extra)


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a silver table and the position that it represents.

    Attributes:
        version: the newest Delta version, by any writer.
        commit: the task's newest commit, whose end is the position of the version.
        quarantine: a version of the quarantine that has the effects of every change before the position, and of later
            ones only if the source had made them before this was looked up; None: there is no quarantine.
    """

    version: int
    commit: OwnCommit
    quarantine: int | None = None

    @property
    def position(self) -> Position:
        """The position after everything in it: after the statement at the commit's end, if that has been applied."""
        end = self.commit.tag.end
        return end if self.commit.tag.rest is None else replace(end, offset=end.offset + 1)


def table_version(spark: SparkSession, target: Target) -> TableVersion:
    """The current version of a silver table. Waits for the last commit of a range or statement that is being applied.

    Raises:
        QualityError: the table does not exist, its history has no commit of the task, or an interrupted run left a
            range incomplete.
        LakehouseError: its history cannot be read.
    """
    deadline = time.monotonic() + PART_SECONDS
    while True:
        state = silver_state(spark, target)
        version, commit = state.delta_version, state.commit
        if version is None or commit is None:
            raise QualityError(
                f"{target.place} does not exist, or its history does not contain its position",
                hint=f"take a new snapshot of the table: dmdelta snapshot SPEC --table {'.'.join(target.source)}",
            )
        if not commit.tag.rest and not _may_be_part(spark, target, commit.tag):
            # After silver: a batch changes the quarantine first.
            return TableVersion(version, commit, Quarantine.of(target).version(spark))
        if time.monotonic() > deadline:
            hint = "an earlier run was interrupted: run the task, which completes the range"
            raise QualityError(f"{target.place} contains an incompletely applied range", hint=hint)
        time.sleep(POLL_SECONDS)


def table_version_at(spark: SparkSession, target: Target, end: Position) -> TableVersion:
    """The version of a silver table when the log had been applied up to `end`; the current one if that is earlier.

    Raises:
        QualityError: its history does not reach back to `end`, or as `table_version`.
        LakehouseError: its history cannot be read.
    """
    current = table_version(spark, target)
    if current.commit.tag.end <= end:
        return current
    app = target.app
    for commit in own_commits(spark, target.place, app):
        if leaves_whole(commit.tag) and commit.tag.end <= end:  # other commits may be parts of a range
            return TableVersion(commit.version, commit)
    raise QualityError(
        f"the history of {target.place} does not reach back to {end}",
        hint="evaluate a later range, or rebuild this one from bronze: dmdelta quality SPEC --replay",
    )


def _may_be_part(spark: SparkSession, target: Target, tag: CommitTag) -> bool:
    """Whether a commit may be one of several of a range, but not the last: such a commit records the range's begin."""
    if tag.begin != tag.end or leaves_whole(tag):
        return False
    # The commit of a created or reloaded table does so, too, but there are no row changes after its position yet.
    bronze, end = target.context.lakehouse.bronze, tag.end
    with wrapped(bronze, "reading"):
        later = spark.sql(
            f"""SELECT 1 FROM {bronze} WHERE {of_source(target.context.source_id)} AND {of_table(*target.source)}
            AND {IS_CHANGE} AND {not_before(end)} LIMIT 1"""
        )
        return not later.isEmpty()


def rows_at(spark: SparkSession, target: Target, version: int) -> DataFrame:
    """The rows of a silver table at a version.

    Raises:
        LakehouseError: the version cannot be read.
    """
    with wrapped(target.place, "reading"):
        return spark.sql(f"SELECT * FROM {target.place} VERSION AS OF {version}")


def damaged_rows(live: DataFrame, expected: DataFrame, gone: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows that repair a table: rows of `expected` that differ in `live`, and rows of `live` that `gone` deletes.

    Args:
        live, expected: frames with silver's columns. A row of `live` that is newer than the expected one is kept.
        gone: the key columns under their names, and `_dm_version`: that of the event that deleted the row.
        schema: the table's structure in silver.

    Returns:
        Silver's columns, GONE, and FOUND: whether `live` has a row with the key.
    """
    keys, columns = schema.primary_key, list(silver_columns(schema))
    listed = ", ".join(map(quote, keys))
    existing = live.selectExpr(
        *(f"{quote(key)} AS _dm_l{number}" for number, key in enumerate(keys)),
        f"{VERSION} AS _dm_live_version",
        f"{identity(schema)} AS _dm_live_identity",
    )
    existing = existing.groupBy(*(f"_dm_l{number}" for number in range(len(keys)))).agg(
        F.max("_dm_live_version").alias("_dm_live_version"),
        F.min("_dm_live_identity").alias("_dm_live_identity"),
        F.count("*").alias("_dm_times"),
    )
    on = same_key(schema, of_alias("_dm_e"), [f"_dm_t._dm_l{number}" for number in range(len(keys))])
    spark = live.sparkSession
    required = expected.selectExpr(*map(quote, columns), f"{identity(schema)} AS _dm_expected_identity")
    values = ", ".join(f"_dm_e.{quote(name)}" for name in columns)
    differs = "_dm_t._dm_live_identity <> _dm_e._dm_expected_identity OR _dm_t._dm_times > 1"
    changed = spark.sql(
        f"""SELECT {values}, false AS {GONE}, _dm_t._dm_times IS NOT NULL AS {FOUND}
        FROM {{required}} AS _dm_e LEFT JOIN {{existing}} AS _dm_t ON {on} WHERE _dm_t._dm_times IS NULL
        OR _dm_t._dm_live_version < _dm_e.{VERSION} OR (_dm_t._dm_live_version = _dm_e.{VERSION} AND ({differs}))""",
        required=required,
        existing=existing,
    )
    empty = ", ".join(
        f"_dm_e.{quote(name)}" if name in keys or name == VERSION else f"CAST(NULL AS {kind}) AS {quote(name)}"
        for name, kind in silver_columns(schema).items()
    )
    deleted = spark.sql(
        f"""SELECT {empty}, true AS {GONE}, true AS {FOUND} FROM
        (SELECT {listed}, max({VERSION}) AS {VERSION} FROM {{gone}} GROUP BY {listed}) AS _dm_e
        JOIN {{existing}} AS _dm_t ON {on} WHERE _dm_t._dm_live_version < _dm_e.{VERSION}""",
        gone=gone,
        existing=existing,
    )
    expected_keys = expected.selectExpr(*(quote(key) for key in keys))
    return changed.unionAll(without_keys(deleted, expected_keys, schema))


def count_damage(rows: DataFrame) -> Damage:
    """The counts of the rows that `damaged_rows` returned."""
    (counts,) = rows.selectExpr(
        f"count_if(NOT {GONE} AND NOT {FOUND}) AS missing",
        f"count_if(NOT {GONE} AND {FOUND}) AS different",
        f"count_if({GONE}) AS extra",
    ).collect()
    return Damage(counts["missing"], counts["different"], counts["extra"])


def repair_rows(
    spark: SparkSession, table: str, rows: DataFrame, schema: TableSchema, next_tag: Callable[[], CommitTag]
) -> None:
    """Write the rows of `damaged_rows` to the table. Requires that no other writer changes the table. Idempotent.

    Args:
        schema: the table's structure in silver.
        next_tag: returns the tag of the next commit; there are at most two.

    Raises:
        CommitConflict, LakehouseError: the table cannot be written.
    """
    on = same_key_of(schema, "_dm_target", "_dm_source")
    damage = count_damage(rows)
    if damage.extra:
        rows.where(GONE).createOrReplaceTempView(_VIEW)
        statement = f"MERGE INTO {table} AS _dm_target USING {_VIEW} AS _dm_source ON {on} WHEN MATCHED THEN DELETE"
        merge(spark, statement, table, next_tag())
    if not damage.missing and not damage.different:
        return
    upserts = rows.where(f"NOT {GONE}").drop(GONE, FOUND)
    if can_replace(spark):
        replace_using(spark, upserts, table, on, next_tag())
        return
    upserts.createOrReplaceTempView(_VIEW)
    statement = f"""MERGE INTO {table} AS _dm_target USING {_VIEW} AS _dm_source ON {on}
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    merge(spark, statement, table, next_tag())


def swap(spark: SparkSession, target: Target, rows: DataFrame, schema: TableSchema, run: str) -> OwnCommit:
    """Replace all rows of a source table, in one commit. Requires that no other writer changes silver.

    Raises:
        CommitConflict, LakehouseError: the table cannot be written.
    """
    if target.merged:
        return replace_where(spark, rows, target.place, target.own_rows, repair_tag(spark, target, run))
    same = spark.table(target.place).schema.simpleString() == rows.schema.simpleString()
    commit = overwrite(spark, rows, target.place, repair_tag(spark, target, run), columns_too=not same)
    if not same:
        restore_clustering(spark, target.place, schema)
    return commit


def repair_tag(spark: SparkSession, target: Target, run: str) -> CommitTag:
    """The tag of the next repair commit: the table's current position and remaining changes, unchanged.

    Raises:
        QualityError, LakehouseError: as `table_version`.
    """
    app = f"{target.app}{REPAIR}"
    own, before = table_version(spark, target).commit.tag, newest_own_commit(spark, target.place, app)
    # The history may no longer have the previous repair, whose version Delta still has.
    version = max(before.tag.version if before else 0, time.time_ns() // 1_000_000) + 1
    return replace(own, app=app, version=version, run=run, begin=own.end)
