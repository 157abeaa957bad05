"""Mending a silver table: rows that are not what they should be are replaced, and nothing else is touched.

What should be there comes as a frame with silver's columns. A mending commit has an application of its own and names
the position that the table has anyway, so the task goes on where it would have gone on.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.ranges import of_source, of_table
from dmdelta.ddl.types.silver_types import VERSION, silver_columns
from dmdelta.errors import QualityError
from dmdelta.lakehouse.commits import CommitTag, OwnCommit, merge, overwrite, replace_using, replace_where
from dmdelta.lakehouse.history import newest_own_commit, own_commits
from dmdelta.lakehouse.session import can_replace
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.position import Position
from dmdelta.model.schema import TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.silver.apply.request import LAST_STEP
from dmdelta.silver.rows.keyless import identity
from dmdelta.silver.table.state import silver_state
from dmdelta.silver.table.table import cluster_again
from dmdelta.silver.table.target import Target

GONE = "_dm_gone"
"""Of a row that should not be there: only its key counts."""
FOUND = "_dm_found"
"""Whether there is a row of its key."""
_VIEW = "dmdelta_mended"
PART_SECONDS = 30.0
"""How long the commits of one range may take."""
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Damage:
    """Rows that are not what they should be.

    Attributes:
        missing: not there.
        different: another value, an older version, or there twice.
        extra: should not be there.
    """

    missing: int = 0
    different: int = 0
    extra: int = 0

    def __bool__(self) -> bool:
        return bool(self.missing or self.different or self.extra)


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A silver table at a version.

    Attributes:
        version: Delta's newest, whoever made it.
        commit: the newest of the task, whose end is the position that the version stands for.
    """

    version: int
    commit: OwnCommit

    @property
    def position(self) -> Position:
        """Behind all that is in it: behind the statement at the commit's end, if that has been followed."""
        end = self.commit.tag.end
        return end if self.commit.tag.rest is None else replace(end, offset=end.offset + 1)


def table_version(spark: SparkSession, target: Target) -> TableVersion:
    """Where a silver table is. Between two commits of one range or statement it is nowhere: the last one is waited for.

    Raises:
        QualityError: it is not there, its history does not tell, or a killed run has left it half changed.
        LakehouseError: its history cannot be read.
    """
    deadline = time.monotonic() + PART_SECONDS
    while True:
        state = silver_state(spark, target)
        version, commit = state.delta_version, state.commit
        if version is None or commit is None:
            raise QualityError(
                f"{target.place} is not there, or its history does not say where it is",
                hint=f"have the table read again: dmdelta snapshot SPEC --table {'.'.join(target.source)}",
            )
        if not commit.tag.rest and not _may_be_part(spark, target, commit.tag):
            return TableVersion(version, commit)
        if time.monotonic() > deadline:
            hint = "a killed run has left it so: run the task, it finishes that"
            raise QualityError(f"{target.place} is between two commits of one range", hint=hint)
        time.sleep(POLL_SECONDS)


def table_version_at(spark: SparkSession, target: Target, end: Position) -> TableVersion:
    """Where a silver table was when the log had been applied up to `end`; where it is, if that is before.

    Raises:
        QualityError: its kept history does not go back so far, or as `table_version`.
        LakehouseError: its history cannot be read.
    """
    now = table_version(spark, target)
    if now.commit.tag.end <= end:
        return now
    app = target.app
    for commit in own_commits(spark, target.place, app):
        whole = commit.tag.version & LAST_STEP == LAST_STEP  # others may be parts of a range
        if whole and commit.tag.end <= end:
            return TableVersion(commit.version, commit)
    raise QualityError(
        f"the history of {target.place} does not go back to {end}",
        hint="judge a later range, or rebuild this one from bronze: dmdelta quality SPEC --replay",
    )


def _may_be_part(spark: SparkSession, target: Target, tag: CommitTag) -> bool:
    """A commit may be one of several of a range, but not the last one: such name the range's begin alone."""
    if tag.begin != tag.end or tag.version & LAST_STEP == LAST_STEP:
        return False
    # So does the commit of a table that was made, or read again; but then nothing behind it has been begun.
    bronze, end = target.context.lakehouse.bronze, tag.end
    with wrapped(bronze, "reading"):
        behind = spark.sql(
            f"""SELECT 1 FROM {bronze} WHERE {of_source(target.context.source_id)} AND {of_table(*target.source)}
            AND op IN ('read', 'insert', 'update', 'delete')
            AND (epoch > {end.epoch} OR (epoch = {end.epoch} AND seq >= {end.seq})) LIMIT 1"""
        )
        return not behind.isEmpty()


def rows_at(spark: SparkSession, target: Target, version: int) -> DataFrame:
    """The rows of a silver table at a version.

    Raises:
        LakehouseError: the version cannot be read.
    """
    with wrapped(target.place, "reading"):
        return spark.sql(f"SELECT * FROM {target.place} VERSION AS OF {version}")


def damaged_rows(live: DataFrame, expected: DataFrame, gone: DataFrame, schema: TableSchema) -> DataFrame:
    """What mends a table: rows of `expected` that are not so in `live`, and keys of `gone` that are older than that.

    Args:
        live, expected: with silver's columns; a row of `live` that is newer than the expected one is left alone.
        gone: the key columns under their names, and `_dm_version`: the event that took the row away.
        schema: the table as silver has it.

    Returns:
        Silver's columns, `_gone` and `_found`: whether `live` has a row of the key.
    """
    keys, columns = schema.primary_key, list(silver_columns(schema))
    listed = ", ".join(map(quote, keys))
    there = live.selectExpr(
        *(f"{quote(key)} AS _dm_l{number}" for number, key in enumerate(keys)),
        f"{VERSION} AS _dm_live_version",
        f"{identity(schema)} AS _dm_live_identity",
    )
    there = there.groupBy(*(f"_dm_l{number}" for number in range(len(keys)))).agg(
        F.max("_dm_live_version").alias("_dm_live_version"),
        F.min("_dm_live_identity").alias("_dm_live_identity"),
        F.count("*").alias("_dm_times"),
    )
    on = " AND ".join(f"_dm_e.{quote(key)} = _dm_t._dm_l{number}" for number, key in enumerate(keys))
    spark = live.sparkSession
    wanted = expected.selectExpr(*map(quote, columns), f"{identity(schema)} AS _dm_wanted_identity")
    values = ", ".join(f"_dm_e.{quote(name)}" for name in columns)
    differs = "_dm_t._dm_live_identity <> _dm_e._dm_wanted_identity OR _dm_t._dm_times > 1"
    changed = spark.sql(
        f"""SELECT {values}, false AS {GONE}, _dm_t._dm_times IS NOT NULL AS {FOUND}
        FROM {{wanted}} AS _dm_e LEFT JOIN {{there}} AS _dm_t ON {on} WHERE _dm_t._dm_times IS NULL
        OR _dm_t._dm_live_version < _dm_e.{VERSION} OR (_dm_t._dm_live_version = _dm_e.{VERSION} AND ({differs}))""",
        wanted=wanted,
        there=there,
    )
    empty = ", ".join(
        f"_dm_e.{quote(name)}" if name in keys or name == VERSION else f"CAST(NULL AS {kind}) AS {quote(name)}"
        for name, kind in silver_columns(schema).items()
    )
    taken = spark.sql(
        f"""SELECT {empty}, true AS {GONE}, true AS {FOUND} FROM
        (SELECT {listed}, max({VERSION}) AS {VERSION} FROM {{gone}} GROUP BY {listed}) AS _dm_e
        JOIN {{there}} AS _dm_t ON {on} WHERE _dm_t._dm_live_version < _dm_e.{VERSION}""",
        gone=gone,
        there=there,
    )
    still = expected.selectExpr(*(quote(key) for key in keys))
    return changed.unionAll(taken.join(still, list(keys), "left_anti").select(*map(quote, changed.columns)))


def count_damage(rows: DataFrame) -> Damage:
    """What `damaged_rows` found."""
    (found,) = rows.selectExpr(
        f"count_if(NOT {GONE} AND NOT {FOUND}) AS missing",
        f"count_if(NOT {GONE} AND {FOUND}) AS different",
        f"count_if({GONE}) AS extra",
    ).collect()
    return Damage(found["missing"], found["different"], found["extra"])


def repair_rows(
    spark: SparkSession, table: str, rows: DataFrame, keys: Sequence[str], next_tag: Callable[[], CommitTag]
) -> None:
    """Put rows of `damaged_rows` in their place. Nobody else may write to the table meanwhile; can be repeated.

    Args:
        next_tag: the tag of the next of at most two commits.

    Raises:
        CommitConflict, LakehouseError: the table cannot be written.
    """
    on = " AND ".join(f"_dm_target.{quote(key)} = _dm_source.{quote(key)}" for key in keys)
    damage = count_damage(rows)
    if damage.extra:
        rows.where(GONE).createOrReplaceTempView(_VIEW)
        statement = f"MERGE INTO {table} AS _dm_target USING {_VIEW} AS _dm_source ON {on} WHEN MATCHED THEN DELETE"
        merge(spark, statement, table, next_tag())
    if not damage.missing and not damage.different:
        return
    upserts = rows.where(f"NOT {GONE}").drop(GONE, FOUND)
    if can_replace(spark):
        replace_using(spark, upserts, table, keys, next_tag())
        return
    upserts.createOrReplaceTempView(_VIEW)
    statement = f"""MERGE INTO {table} AS _dm_target USING {_VIEW} AS _dm_source ON {on}
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    merge(spark, statement, table, next_tag())


def swap(spark: SparkSession, target: Target, rows: DataFrame, schema: TableSchema, run: str) -> OwnCommit:
    """Put rows in the place of all of a source table's, in one commit. Nobody else may write to silver meanwhile.

    Raises:
        CommitConflict, LakehouseError: the table cannot be written.
    """
    if target.merged:
        return replace_where(spark, rows, target.place, target.own_rows, repair_tag(spark, target, run))
    same = spark.table(target.place).schema.simpleString() == rows.schema.simpleString()
    commit = overwrite(spark, rows, target.place, repair_tag(spark, target, run), columns_too=not same)
    if not same:
        cluster_again(spark, target.place, schema)
    return commit


def repair_tag(spark: SparkSession, target: Target, run: str) -> CommitTag:
    """The tag of the next mending commit: the table's own position and what is still to be done there, unchanged.

    Raises:
        QualityError, LakehouseError: as `table_version`.
    """
    app = f"{target.app}:mend"
    own, before = table_version(spark, target).commit.tag, newest_own_commit(spark, target.place, app)
    version = before.tag.version + 1 if before else 1
    return replace(own, app=app, version=version, run=run, begin=own.end)
