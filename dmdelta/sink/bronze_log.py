"""What the sink asks of bronze about a range: which tables have changes where, transactions' begins, structures."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from pyspark.sql import Row, SparkSession

from dmdelta.changelog.ranges import XaGroup, in_group, of_source, within
from dmdelta.changelog.xa import AT, committed_groups, position_of
from dmdelta.errors import UnknownSchema
from dmdelta.lakehouse.foreign import wrapped
from dmdelta.lakehouse.place import literal
from dmdelta.model.change import ROW_OPS, Op
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName, TableSchema
from dmdelta.sink.slices import SLICE_BYTES, Cut, Rows, Statement, Survey, places

_STATEMENTS = "('ddl', 'truncate')"
_CHANGES = "('read', 'insert', 'update', 'delete')"


@dataclass(slots=True)
class BronzeLog:
    """One source's log in bronze.

    Attributes:
        bronze: the SQL identifier of the table.
    """

    spark: SparkSession
    bronze: str
    source_id: str
    bucket: int = SLICE_BYTES
    _structures: dict[int, TableSchema] = field(default_factory=dict)

    def survey(self, begin: Position, end: Position) -> Survey:
        """What [begin, end), of one epoch, holds.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        source, inside = of_source(self.source_id), within(begin, end)
        bucket = f"(seq - {begin.seq}L) div {self.bucket}L"
        with wrapped(self.bronze, "reading"):
            # Numbers only: a least struct or a list would have Spark sort all rows.
            lines = self.spark.sql(
                f"""SELECT schema_name, table_name, schema_version, op, {bucket} AS bucket, count(image) AS partial,
                count_if(key_changed) AS moves, min(seq) AS first, max(seq) AS last
                FROM {self.bronze} WHERE {source} AND {inside} AND (xid IS NULL OR op = 'xa_commit')
                GROUP BY schema_name, table_name, schema_version, op, {bucket}"""
            ).collect()
            ops = {Op(line["op"]) for line in lines}
            rows = [_rows(line) for line in lines if Op(line["op"]) in ROW_OPS]
            rows += self._committed(inside) if Op.XA_COMMIT in ops else []
            statements = self._statements(inside) if ops & {Op.DDL, Op.TRUNCATE} else []
            several = len({line["bucket"] for line in lines}) > 1
            cuts = self._cuts(inside, bucket, lines, places(begin)) if several else []
        return Survey(begin, end, rows, cuts, statements)

    def _statements(self, inside: str) -> list[Statement]:
        """Once for each place: a statement on several tables has a row for each."""
        found: dict[Position, Statement] = {}
        for row in self.spark.sql(
            f"""SELECT {AT} AS at, schema_name, table_name, ddl FROM {self.bronze}
            WHERE {of_source(self.source_id)} AND {inside} AND op IN {_STATEMENTS}"""
        ).collect():
            at = position_of(row["at"])
            known = found.get(at)
            tables = known.tables if known else ()
            if row["table_name"] is not None:
                tables = (*tables, (row["schema_name"], row["table_name"]))
            found[at] = Statement(at, row["schema_name"] or "", tables, row["ddl"] or "")
        return [found[at] for at in sorted(found)]

    def groups(self, begin: Position, end: Position) -> tuple[XaGroup, ...]:
        """The XA transactions that commit in [begin, end)."""
        with wrapped(self.bronze, "reading"):
            found = committed_groups(self.spark, self.bronze, of_source(self.source_id), within(begin, end))
        return tuple(group for group, _ in found)

    def structures(self, versions: Collection[int], begin: Position, end: Position) -> dict[int, TableSchema]:
        """Structures by version, looked for in [begin, end) first: a segment tells them ahead of their rows.

        Raises:
            UnknownSchema: bronze does not tell one.
            LakehouseError: bronze cannot be read.
        """
        for scope in (within(begin, end), "true"):
            missing = [version for version in versions if version not in self._structures]
            if not missing:
                break
            query = f"""SELECT schema_version, any_value(ddl) AS ddl FROM {self.bronze}
                WHERE {of_source(self.source_id)} AND {scope} AND op = 'schema'
                AND schema_version IN ({", ".join(map(str, missing))}) GROUP BY schema_version"""
            with wrapped(self.bronze, "reading"):
                found = self.spark.sql(query).collect()
            self._structures.update({row["schema_version"]: TableSchema.from_json(row["ddl"]) for row in found})
        unknown = [version for version in versions if version not in self._structures]
        if unknown:
            raise UnknownSchema(
                "bronze does not tell the structure of some rows",
                hint="they were landed by an older dmdelta: run with --remove-meta",
                position=str(begin),
            )
        return {version: self._structures[version] for version in versions}

    def statements_on(self, table: TableName, end: Position) -> list[str]:
        """The statements on a table before a position, oldest first.

        Raises:
            LakehouseError: bronze cannot be read.
        """
        with wrapped(self.bronze, "reading"):
            rows = self.spark.sql(
                f"""SELECT ddl FROM {self.bronze} WHERE {of_source(self.source_id)} AND op IN {_STATEMENTS}
                AND schema_name = {literal(table[0])} AND table_name = {literal(table[1])}
                AND (epoch, seq) < ({end.epoch}, {end.seq}L) ORDER BY epoch, seq, row"""
            ).collect()
        return [row["ddl"] for row in rows]

    def _committed(self, inside: str) -> list[Rows]:
        """The changes of XA transactions that commit in the range, wherever it is in it."""
        found: list[Rows] = []
        for group, at in committed_groups(self.spark, self.bronze, of_source(self.source_id), inside):
            lines = self.spark.sql(
                f"""SELECT schema_name, table_name, schema_version, op, count(image) AS partial,
                count_if(key_changed) AS moves, min(seq) AS first, max(seq) AS last
                FROM {self.bronze} WHERE {of_source(self.source_id)} AND {in_group(group)}
                AND op IN {_CHANGES} GROUP BY schema_name, table_name, schema_version, op"""
            ).collect()
            found += [replace(_rows(line), committed=True, first=at.seq, last=at.seq) for line in lines]
        return found

    def _cuts(self, inside: str, bucket: str, lines: list[Row], place: Callable[[int], Position]) -> list[Cut]:
        """For each bucket where its first transaction begins; where none does, its first row."""
        transaction = "coalesce(gtid, CAST(committed_at AS STRING))"
        rows = self.spark.sql(
            f"""SELECT {bucket} AS bucket, min(seq) AS seq FROM (SELECT min(seq) AS seq FROM {self.bronze}
                WHERE {of_source(self.source_id)} AND {inside} AND (op IN {_CHANGES} OR op = 'xa_commit')
                GROUP BY {transaction}) GROUP BY {bucket}"""
        ).collect()
        begins = {row["bucket"]: Cut(place(row["seq"]), boundary=True) for row in rows}
        firsts: dict[int, int] = {}
        for line in lines:
            firsts[line["bucket"]] = min(line["first"], firsts.get(line["bucket"], line["first"]))
        return [begins.get(number) or Cut(place(seq), boundary=False) for number, seq in sorted(firsts.items())]


def _rows(line: Row) -> Rows:
    name = (line["schema_name"], line["table_name"])
    ops = frozenset((line["op"],))
    first, last = line["first"], line["last"]
    return Rows(name, line["schema_version"], ops, line["partial"], line["moves"], first=first, last=last)
