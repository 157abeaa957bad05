"""The keys of quarantined rows: a statement that changes a table's key leaves them as they are.

The quarantine has each key as a text of the columns' names and values. After a change of either, the next change of the
row would not find it there, and the row would stay in quarantine for good. Silver does not follow such a statement.
"""

from collections.abc import Iterable

from pyspark.sql import SparkSession

from dmdelta.changelog.extraction import keys_of
from dmdelta.ddl.tracking.effects import Altered, Effect
from dmdelta.ddl.types.silver_types import silver_type
from dmdelta.errors import SchemaError
from dmdelta.lakehouse.spark_errors import wrapped
from dmdelta.model.schema import StoredColumn, TableSchema
from dmdelta.silver.apply.context import ApplyContext
from dmdelta.silver.apply.gate import has_quarantined
from dmdelta.silver.apply.quarantine import Quarantine

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(20,0)")
"""The types of silver whose values have the same digits in JSON."""


def assert_keys_kept(work: ApplyContext, effects: Iterable[Effect]) -> None:
    """Assert that quarantined rows are still found by their keys after a statement that does not empty the table.

    Raises:
        SchemaError: it changes the key's columns, their names or the texts of their values.
        LakehouseError: the quarantine cannot be read.
    """
    request, spark = work.request, work.spark
    context, target = request.context, request.target
    changed = [effect for effect in effects if isinstance(effect, Altered) and changes_key_text(effect)]
    if not changed or not context.keeps_quarantine or not has_quarantined(spark, context, target):
        return
    if _has_other_keys(spark, Quarantine.of(target), target.silver_schema(changed[-1].after)):
        table = ".".join(target.source)
        raise SchemaError(
            "it changes the primary key, and the table has quarantined rows: release or discard them first "
            f"(dmdelta quality release SPEC --table {table}; --force, --discard)"
        )


def changes_key_text(altered: Altered) -> bool:
    """Whether a row's key has another text in the quarantine after a change of the table's structure."""
    return _key_kinds(altered.before) != _key_kinds(altered.after)


def _has_other_keys(spark: SparkSession, quarantine: Quarantine, schema: TableSchema) -> bool:
    """Whether some keys are those of another structure. A snapshot may have read rows after the statement."""
    with wrapped(quarantine.place, "reading"):
        texts = [row["structure"] for row in quarantine.rows(spark).select("structure").distinct().collect()]
    return any(_key_kinds(TableSchema.from_json(text)) != _key_kinds(schema) for text in texts)


def _key_kinds(schema: TableSchema) -> list[tuple[str, str]]:
    """The names of the key's columns, and their types in silver, without those of other shards."""
    own = (column.own if isinstance(column, StoredColumn) else column for column in keys_of(schema))
    kinds = ((column.name, silver_type(column)) for column in own)
    return [(name, "INTEGER" if kind in _INTEGERS else kind) for name, kind in kinds]
