"""All types through the sink: the target's values equal the source's."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from dmdelta.errors import SinkError
from dmdelta.sink.change import Shape
from dmdelta.sink.execute.worker import execute_written
from dmdelta.sink.plan import sql
from dmdelta.sink.read.literals import NAMELESS
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.target.connection import connect
from tests.support.charset_families import charset_families
from tests.support.sinking import Sinking, table_differences, target_of
from tests.support.type_families import FAMILIES, Family, matrices
from tests.support.type_matrix import write

LEFT_OUT = {
    "json_made_by_functions": "typed values have no JSON text of their own: the test of documents says what arrives"
}
"""Family → why it is not compared value by value."""
NOT_IN_TIDB = {
    "geometries": "TiDB has no spatial types: test_sink_tidb has the error, and the LONGBLOB that takes their bytes"
}
ROUNDED_BY_TIDB = {("floats", "dmd"): ("-0.0001",)}
"""(family, column) → values of which TiDB keeps other last bits: what MySQL rounds to the digits of a DOUBLE(M,D) is
not the nearest double (-9.999999999998899e-05), and TiDB rounds it to that one."""

DOCUMENTS = next(family for family in FAMILIES if family.name == "json_made_by_functions")
TARGETS = [
    "mysql80_too",
    pytest.param("mariadb", marks=pytest.mark.long),
    pytest.param("tidb", marks=pytest.mark.tidb),
]


@pytest.fixture
def target(request):
    return request.getfixturevalue(request.param)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("keyed", [True, pytest.param(False, marks=pytest.mark.long)], ids=["keyed", "keyless"])
@pytest.mark.parametrize("target", TARGETS, indirect=True)
def test_every_value_arrives(mysql80, target, spark, tmp_path, keyed):
    """Each value of each type is inserted, updated to the next one, and deleted: by its key or by all columns."""
    database = mysql80.fresh_database("sunk_types")
    known = {family.name: family for family in FAMILIES if "mysql80" in family.servers}
    for name in (*LEFT_OUT, *(NOT_IN_TIDB if target.flavor == "tidb" else ())):
        del known[name]
    if target.flavor == "tidb":
        known.update({name: _without(known[name], column, left) for (name, column), left in ROUNDED_BY_TIDB.items()})
    families = [*known.values(), *charset_families(mysql80)]
    tables = [table for table in matrices(families) if not table.table.startswith("charsets_")]
    settings = SinkSettings(target_of(target), metadata=f"dm_{database}", workers=4, batch=50, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    for statements in (
        [statement for table in tables for statement in (table.create(keyed=keyed), *table.inserts())],
        [statement for table in tables for statement in (*table.updates(), *table.deletes())],
    ):
        write(mysql80, database, statements)
        sinking.land()
        sinking.run()
        found = [line for table in tables for line in table_differences(mysql80, target, database, table.table)]
        assert not found, f"{len(found)} differences: {[line[:300] for line in found[:5]]}"


@pytest.mark.parametrize(
    "target", ["mysql80_too", "mysql57", "mariadb", pytest.param("tidb", marks=pytest.mark.tidb)], indirect=True
)
@pytest.mark.parametrize("update", ["", " ON DUPLICATE KEY UPDATE e=VALUES(e)"])
def test_many_enum_values_without_a_name(target, update):
    """One statement has more of them than a server lists warnings by default; any other warning is still an error."""
    database, count = target.fresh_database("nameless"), 3000
    target.execute("CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a'), n VARCHAR(9))", database=database)
    rows = ",".join(f"({key},{NAMELESS},'x')" for key in range(count))
    with closing(connect(target_of(target), autocommit=False)) as connection:
        execute_written(connection, f"INSERT INTO {database}.t (id,e,n) VALUES {rows}{update}")
        connection.commit()
        rows = rows.replace("(", "(10000+")  # other keys
        with pytest.raises(SinkError, match="would change values"):
            execute_written(connection, f"INSERT INTO {database}.t (id,e,n) VALUES {rows},({count},'a','too long for')")
        connection.rollback()
    assert target.query("SELECT count(*), sum(e = 0) FROM t", database) == ((count, count),)


@pytest.mark.parametrize(
    "target", ["mysql80_too", "mysql57", "mariadb", pytest.param("tidb", marks=pytest.mark.tidb)], indirect=True
)
def test_keys_with_an_enum_value_without_a_name(target):
    """Exactly the rows are deleted or changed, in one statement with rows whose values have names, too."""
    database = target.fresh_database("nameless")
    rows = [(1, NAMELESS), (1, "'a'"), (2, NAMELESS), (3, NAMELESS), (4, "'b'")]
    target.execute("CREATE TABLE t (id INT, e ENUM('a', 'b'), n INT, PRIMARY KEY (id, e))", database=database)
    shape = Shape(f"{database}.t", "(`id`, `e`, `n`)", "", "(`id`, `e`)")
    with closing(connect(target_of(target), autocommit=False)) as connection:
        execute_written(connection, sql.insert(shape, [f"({key},{value},0)" for key, value in rows]))
        execute_written(connection, sql.delete(shape, ["(1,'a')", "(2,'')", "(4,'b')"]))
        execute_written(connection, sql.update(shape, f"`id`=3, `e`={NAMELESS}, `n`=1", "(3,'')"))
        execute_written(connection, sql.update(shape, "`id`=1, `e`='b', `n`=1", "(1,'')"))
        connection.commit()
    left = target.query("SELECT id, e + 0, n FROM t ORDER BY id", database)
    assert [tuple(map(int, row)) for row in left] == [(1, 2, 1), (3, 0, 1)]


@pytest.mark.parametrize("target", TARGETS, indirect=True)
def test_documents_with_more_than_json(mysql80, target, spark, tmp_path):
    """Values that functions put into documents arrive as in the source's text: a DECIMAL as a DOUBLE, dates and bytes
    as strings. Such a document is found in a table without a key, too.
    """
    database = mysql80.fresh_database("documents")
    ((_, values),) = DOCUMENTS.columns.values()
    inserts = [f"INSERT INTO {table} VALUES ({n}, {one})" for n, one in enumerate(values) for table in ("d", "bag")]
    mysql80.execute(
        "CREATE TABLE d (id INT PRIMARY KEY, j JSON)", "CREATE TABLE bag (id INT, j JSON)", *inserts, database=database
    )
    settings = SinkSettings(target_of(target), metadata=f"dm_{database}", workers=4, batch=50, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    sinking.land()
    sinking.run()
    mysql80.execute("UPDATE bag SET id = -id WHERE id % 2 = 1", "DELETE FROM bag WHERE id % 4 = 0", database=database)
    sinking.land()
    sinking.run()
    for table in ("d", "bag"):
        source, there = (
            dict(server.query(f"SELECT id, CAST(j AS CHAR) FROM {table}", database)) for server in (mysql80, target)
        )
        assert {key: json.loads(text) for key, text in there.items()} == {
            key: json.loads(text) for key, text in source.items()
        }


def _without(family: Family, column: str, left_out: Sequence[str]) -> Family:
    kind, values = family.columns[column]
    kept = tuple(value for value in values if value not in left_out)
    return replace(family, columns={**family.columns, column: (kind, kept)})
