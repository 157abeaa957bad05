"""Compares a table on two servers: the same SQL on both, each with its own names and dialect."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dmdelta.model.gtid import Flavor
from dmdelta.model.schema import Column, TableSchema
from dmdelta.model.spark_sql import quote
from dmdelta.model.type_names import BYTES, CHARACTERS, NAMED, WHOLE
from dmdelta.quality.canonical import Sides, is_comparable
from dmdelta.quality.json_compare import same_text
from dmdelta.quality.reconcile import BUCKET_ROWS, BUCKETS, Comparison

DOCUMENT_ROWS = 20_000
"""Approximate number of rows whose documents are read at once."""
_FAMILIES = (
    frozenset(WHOLE),
    frozenset(("datetime", "timestamp")),
    frozenset((*CHARACTERS, *NAMED)),
    frozenset(BYTES),
)
_DOCUMENTS = frozenset(("json", "longtext", "mediumtext", "text"))


@dataclass(frozen=True, slots=True)
class Documents:
    """The names of the JSON columns on each server."""

    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerComparison:
    """How a table is compared: `source` and `target` have corresponding columns in the same order.

    Attributes:
        uncompared: columns of the source that the target lacks, or has with another type.
    """

    source: Comparison
    target: Comparison
    documents: Documents = Documents()
    uncompared: tuple[str, ...] = ()

    def documents_query(self, comparison: Comparison, table: str, group: int, groups: int, condition: str = "") -> str:
        """Key and documents as text, for one of `groups` groups of rows, in the SQL of that side."""
        names = self.documents.source if comparison is self.source else self.documents.target
        texts = ", ".join(f"CAST({quote(name)} AS CHAR)" for name in names)
        among = f"CRC32({comparison.key_text.source}) % {groups} = {group}"
        return f"SELECT {comparison.key_text.source}, {texts} FROM {table}{comparison.source_where(condition, among)}"


def plan_server_comparison(
    schema: TableSchema, target: TableSchema, flavors: tuple[Flavor, Flavor], rows: int, left_out: str = ""
) -> ServerComparison:
    """Plan how a source table is compared with its table in the target.

    Args:
        target: the target table's schema.
        flavors: the source's and the target's.
        rows: approximate number of rows in the source.
        left_out: the condition of the rows that are not compared, '' for none.
    """
    others = {column.name.lower(): column for column in target.columns}
    pairs = [(column, others.get(column.name.lower())) for column in schema.columns]
    # The source's type decides a value's text; types of a family have the same text on both servers.
    alike = [(one, replace(one, name=other.name)) for one, other in pairs if other and _is_alike(one, other)]
    documents = [
        (one, other)
        for one, other in pairs
        if other and "json" in (one.type, other.type) and _DOCUMENTS.issuperset((one.type, other.type))
    ]
    keys = [pair for name in schema.primary_key for pair in alike if pair[0].name == name]
    keyed = bool(keys) and len(keys) == len(schema.primary_key)
    if not keyed:
        documents = []
    least, most = BUCKETS
    buckets = min(max(least, rows // BUCKET_ROWS), most)
    sides = [
        Comparison(
            tuple(pair[side] for pair in alike),
            tuple(pair[side] for pair in (keys if keyed else alike)),
            flavors[side],
            buckets,
            Sides(left_out, "") if left_out else None,
        )
        for side in (0, 1)
    ]
    compared = {one.name for one, _ in (*alike, *documents)}
    return ServerComparison(
        sides[0],
        sides[1],
        Documents(tuple(one.name for one, _ in documents), tuple(other.name for _, other in documents)),
        tuple(column.name for column in schema.columns if column.name not in compared),
    )


def differing_texts(
    names: Sequence[str], source: Sequence[Sequence[str | None]], target: Sequence[Sequence[str | None]]
) -> dict[str, dict[str, tuple[str | None, str | None]]]:
    """The documents that differ by meaning, by key and column, for the keys that both sides have.

    Args:
        source, target: key and documents of each row.
    """
    others: Mapping[str, Sequence[str | None]] = {str(row[0]): row[1:] for row in target}
    documents: dict[str, dict[str, tuple[str | None, str | None]]] = {}
    for key, *texts in source:
        theirs = others.get(str(key))
        if theirs is None:
            continue
        pairs = zip(names, texts, theirs, strict=True)
        differing = {name: (one, other) for name, one, other in pairs if not same_text(one, other)}
        if differing:
            documents[str(key)] = differing
    return documents


def _is_alike(one: Column, other: Column) -> bool:
    """Whether the column's values have the same text on both servers."""
    if not is_comparable(one) or not is_comparable(other):
        return False
    if one.type == "decimal" or other.type == "decimal":
        return one.type == other.type and one.scale == other.scale
    if one.precision != other.precision:
        return False
    return one.type == other.type or any(one.type in family and other.type in family for family in _FAMILIES)
