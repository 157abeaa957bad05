"""Values after MODIFY: the plan's expression in Spark is compared with the server's result."""

import re
from dataclasses import dataclass, field
from datetime import timezone
from decimal import Decimal
from typing import Any

import pytest
from pymysql.err import MySQLError
from pyspark.sql import SparkSession

from dmdelta.ddl.type_changes import TYPE_CHANGES
from dmdelta.ddl.types.conversion import Conversion, ConversionKind, plan_conversion
from dmdelta.ddl.types.outcome import widens
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.model.schema import Column
from dmdelta.source.catalog import read_schemas
from tests.support.diff import silver_rows
from tests.support.servers import Server
from tests.support.type_changes import CASES
from tests.support.values import SourceColumn, source_rows

LENIENT = "SET sql_mode = 'NO_ENGINE_SUBSTITUTION'"

TOGETHER = 12
WIDENED = [
    *[("TINYINT", "SMALLINT"), ("SMALLINT", "INT"), ("INT", "BIGINT"), ("INT", "DOUBLE"), ("INT", "DECIMAL(12,2)")],
    *[("BIGINT", "DECIMAL(20,0)"), ("TINYINT", "DECIMAL(10,0)"), ("DECIMAL(12,2)", "DECIMAL(22,4)")],
    *[("FLOAT", "DOUBLE"), ("DATE", "TIMESTAMP_NTZ")],
]

Rows = list[tuple[object, object]]


@dataclass
class Changed:
    """A column before and after: its values, also if silver changes them twice, and the server's error if it refused."""

    mariadb: bool
    old: Column
    before: Rows
    new: Column | None = None
    wanted: Rows = field(default_factory=list)
    found: Rows = field(default_factory=list)
    repeated: Rows = field(default_factory=list)
    refused: str = ""

    @property
    def plan(self) -> Conversion:
        assert self.new is not None
        return plan_conversion(self.old, self.new, mariadb=self.mariadb)


def _columns(server: Server, database: str) -> dict[str, Column]:
    """The changing column of each table."""
    with server.connect() as connection:
        return {found.table: found.columns[1] for found in read_schemas(connection, lambda name, _: name == database)}


def _rows(server: Server, database: str, table: str, column: Column) -> Rows:
    columns = [SourceColumn("id", "int", 10), SourceColumn("c", column.type, column.precision)]
    return sorted(source_rows(server, database, table, columns))


def _change(server: Server) -> list[Changed]:
    """A strict session refuses values that do not fit, so a lenient one runs the statements."""
    database, mariadb = server.fresh_database("changes"), server.flavor == "mariadb"
    for number, (old, _, values) in enumerate(CASES):
        rows = ", ".join(f"({key}, {value})" for key, value in enumerate([*values, "NULL"]))
        create = f"CREATE TABLE t{number} (id INT PRIMARY KEY, c {old})"
        server.execute(LENIENT, create, f"INSERT INTO t{number} VALUES {rows}", database=database)
    columns = _columns(server, database)
    changes = list[Changed]()
    for number, (_, new, _) in enumerate(CASES):
        old_column = columns[f"t{number}"]
        changes.append(Changed(mariadb, old_column, _rows(server, database, f"t{number}", old_column)))
        try:
            server.execute(LENIENT, f"ALTER TABLE t{number} MODIFY c {new}", database=database)
        except MySQLError as error:
            changes[-1].refused = str(error)
    columns = _columns(server, database)
    for number, changed in enumerate(changes):
        if not changed.refused:
            changed.new = columns[f"t{number}"]
            changed.wanted = _rows(server, database, f"t{number}", changed.new)
    return changes


def _python(value: Any, kind: str) -> Any:
    """A value as createDataFrame expects it."""
    if value is None or kind not in ("TIMESTAMP", "DECIMAL(20,0)"):
        return value
    return Decimal(value) if kind != "TIMESTAMP" else value.replace(tzinfo=timezone.utc)


def _apply(spark: SparkSession, changes: list[Changed]) -> None:
    """Silver's values after each change, several changes per query: each query is slow, and so is a wide one."""
    kinds = [silver_type(one.old) for one in changes]
    most = max(len(one.before) for one in changes)
    columns = [
        [_python(value, kind) for _, value in one.before] + [None] * (most - len(one.before))
        for one, kind in zip(changes, kinds, strict=True)
    ]
    rows = [(number, *values) for number, values in enumerate(zip(*columns, strict=True))]
    listed = ", ".join(f"c{number} {kind}" for number, kind in enumerate(kinds))
    chosen = [f"{_value(one, number)} AS d{number}" for number, one in enumerate(changes)]
    frame = spark.createDataFrame(rows, f"id INT, {listed}").selectExpr("id", *chosen).localCheckpoint()
    wanted = ", ".join(
        f"CAST(NULL AS {silver_type(one.new)}) d{number}" for number, one in enumerate(changes) if one.new
    )
    for told, field_ in zip(frame.schema.fields[1:], spark.sql(f"SELECT {wanted}").schema.fields, strict=True):
        assert told.dataType == field_.dataType, changes[int(told.name[1:])]
    found = sorted(silver_rows(frame, frame.columns))
    twice = frame.selectExpr("id", *[f"{_repeated(one, number)} AS d{number}" for number, one in enumerate(changes)])
    repeated = sorted(silver_rows(twice, twice.columns))
    for number, one in enumerate(changes):
        one.found = [(row[0], row[number + 1]) for row in found[: len(one.before)]]
        one.repeated = [(row[0], row[number + 1]) for row in repeated[: len(one.before)]]


def _value(changed: Changed, number: int) -> str:
    assert changed.new is not None
    value = changed.plan.expression(f"`c{number}`")
    return f"CAST({value} AS {silver_type(changed.new)})" if changed.plan.kind is ConversionKind.WIDEN else value


def _repeated(changed: Changed, number: int) -> str:
    """The changed value, changed again if silver's type stays: safe mode then repeats the change of older rows."""
    assert changed.new is not None
    stays = silver_type(changed.old) == silver_type(changed.new)
    return changed.plan.expression(f"`d{number}`") if stays else f"`d{number}`"


def _wrong(changed: Changed) -> str:
    """The difference from the source; '' if none."""
    if changed.refused:
        return f"refused: {changed.refused}"
    if changed.plan.kind is ConversionKind.STOP:
        return f"stops: {changed.plan.reason}"
    if changed.repeated != changed.found:
        return f"{changed.repeated} instead of {changed.found} if it is repeated"
    if changed.found == changed.wanted:
        return ""
    more, missing = (
        [row for row in rows if row not in others]
        for rows, others in ((changed.found, changed.wanted), (changed.wanted, changed.found))
    )
    return f"{more} instead of {missing}, before: {changed.before}"


@pytest.mark.parametrize(
    "server", ["mysql80", *(pytest.param(name, marks=pytest.mark.long) for name in ("mysql57", "mariadb"))]
)
def test_changes(server: str, request: pytest.FixtureRequest, spark: SparkSession) -> None:
    """Silver's values after a type change equal those of the source, also if it is repeated: each of CASES."""
    changes = _change(request.getfixturevalue(server))
    planned = [one for one in changes if not one.refused and one.plan.kind is not ConversionKind.STOP]
    for first in range(0, len(planned), TOGETHER):
        _apply(spark, planned[first : first + TOGETHER])
    found = {f"{old} to {new}": _wrong(one) for (old, new, _), one in zip(CASES, changes, strict=True)}
    wrong = [f"{case}: {text}" for case, text in found.items() if text]
    assert not wrong, f"{len(wrong)} of {len(CASES)} changes:\n" + "\n".join(wrong)


def test_widening(spark: SparkSession, tmp_path) -> None:
    """Delta widens in place each type change that the plan calls a widening."""
    assert all(widens(one, other) for one, other in WIDENED)
    table = f"delta.`{tmp_path}/t`"
    columns = ", ".join(f"c{number} {one}" for number, (one, _) in enumerate(WIDENED))
    properties = "'delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported'"
    spark.sql(f"CREATE TABLE {table} ({columns}) USING delta TBLPROPERTIES ({properties})")
    for number, (_, other) in enumerate(WIDENED):
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN c{number} TYPE {other}")
    told = [re.sub(r"\s", "", field.dataType.simpleString()).upper() for field in spark.table(table).schema.fields]
    assert told == [other for _, other in WIDENED]


def test_every_kind_is_documented() -> None:
    """The page of type changes has pairs of each kind."""
    assert {plan_conversion(*change.columns).kind for change in TYPE_CHANGES} == set(ConversionKind)
