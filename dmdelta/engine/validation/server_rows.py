"""Compares the rows of one table between the source and the sink's target, each with its own server's SQL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dmdelta.engine.validation.results import RowDifference
from dmdelta.quality.reconcile import (
    HashedRow,
    Kind,
    add_sums,
    compared_rows,
    count_query,
    differing_rows,
    plan_suspects,
    source_rows_query,
    source_sums_query,
    source_values_query,
)
from dmdelta.quality.server_tables import DOCUMENT_ROWS, ServerComparison, differing_texts
from dmdelta.sink.target.snapshot import TargetSnapshot
from dmdelta.source.snapshot.consistent_read import ConsistentTable

KEYS_AT_ONCE = 500
Values = dict[str, dict[str, tuple[str | None, str | None]]]


@dataclass(frozen=True, slots=True)
class Differing:
    """The result of comparing two tables.

    Attributes:
        rows, target_rows: number of compared rows of each side.
        differences: all rows that differ; only the first ones have values.
        not_looked_at: number of differing buckets whose rows were not compared one by one.
    """

    comparison: ServerComparison
    rows: int
    target_rows: int
    differences: Sequence[RowDifference] = field(default_factory=list)
    not_looked_at: int = 0


@dataclass(frozen=True, slots=True)
class ServerRows:
    """A table on both servers.

    Attributes:
        name: the target's table, as SQL.
        own_rows: the condition (SQL) that selects the source table's rows in the target; '' for all.
        limit: maximum number of rows that are shown with their values.
    """

    source: ConsistentTable
    target: TargetSnapshot
    name: str
    own_rows: str
    comparison: ServerComparison
    limit: int

    def differing(self) -> Differing:
        """Compare the sums of both sides, the rows of buckets whose sums differ, and the documents of all other rows.

        Raises:
            SourceUnavailable, SourceError, TargetUnavailable, SinkError: one of the servers cannot be read.
        """
        ours, theirs, table = self.comparison.source, self.comparison.target, self.source
        queries = [(source_sums_query(ours, table.name, part), ()) for part in table.parts]
        source = add_sums(table.ask(queries))
        target = add_sums([self.target.rows(source_sums_query(theirs, self.name, self.own_rows))])
        suspects = plan_suspects(source, target)
        kinds: dict[str, Kind] = {}
        if suspects.buckets:
            source_queries = [(source_rows_query(ours, table.name, part, suspects.buckets), ()) for part in table.parts]
            source_rows = [row for part in table.ask(source_queries) for row in part]
            target_rows = self.target.rows(source_rows_query(theirs, self.name, self.own_rows, suspects.buckets))
            compared = compared_rows(_hashed(source_rows), _hashed(target_rows))
            kinds = differing_rows(compared.source, compared.silver)
        counts = [sum(count for count, _ in sums.values()) for sums in (source, target)]
        documents = {key: texts for key, texts in self._documents(counts[0]).items() if key not in kinds}
        differences = self._shown(kinds, documents)
        return Differing(self.comparison, counts[0], counts[1], differences, suspects.left)

    def differing_among(self, keys: Sequence[str]) -> Differing:
        """Compare only the rows of some keys.

        Raises:
            SourceUnavailable, SourceError, TargetUnavailable, SinkError: as `differing`.
        """
        source, target = self._values(keys)
        kinds: dict[str, Kind] = {}
        for key in keys:
            if (key in source) != (key in target):
                kinds[key] = Kind.MISSING if key in source else Kind.EXTRA
            elif source.get(key) != target.get(key):
                kinds[key] = Kind.DIFFERENT
        documents = self._documents(self.source.rows)
        documents = {key: documents[key] for key in keys if key in documents and key not in kinds}
        return Differing(self.comparison, len(source), len(target), self._shown(kinds, documents))

    def left_out_rows(self) -> int:
        """The number of the source's rows that are not compared.

        Raises:
            SourceUnavailable, SourceError: the source cannot be read.
        """
        left_out = self.comparison.source.left_out
        if left_out is None:
            return 0
        queries = [(count_query(self.source.name, part, left_out.source), ()) for part in self.source.parts]
        return sum(int(row[0]) for part in self.source.ask(queries) for row in part)

    def _shown(self, kinds: Mapping[str, Kind], documents: Values) -> list[RowDifference]:
        first = list(kinds)[: self.limit]
        source, target = self._values(first)
        names = [name for name, _ in self.comparison.source.values()]
        nothing = (None,) * len(names)
        differences = []
        for key, kind in kinds.items():
            values = {}
            if key in first:
                pairs = zip(source.get(key, nothing), target.get(key, nothing), strict=True)
                values = {name: pair for name, pair in zip(names, pairs, strict=True) if pair[0] != pair[1]}
            differences.append(RowDifference(kind, key, values))
        return differences + [RowDifference(Kind.DIFFERENT, key, texts) for key, texts in documents.items()]

    def _values(
        self, keys: Sequence[str]
    ) -> tuple[dict[str, tuple[str | None, ...]], dict[str, tuple[str | None, ...]]]:
        """The text of each column of the rows of some keys, for both sides."""
        source: dict[str, tuple[str | None, ...]] = {}
        target: dict[str, tuple[str | None, ...]] = {}
        for first in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[first : first + KEYS_AT_ONCE]
            query = source_values_query
            ours = [(query(self.comparison.source, self.source.name, part, some), some) for part in self.source.parts]
            source |= {str(row[0]): row[1:] for part in self.source.ask(ours) for row in part}
            theirs = query(self.comparison.target, self.name, self.own_rows, some)
            target |= {str(row[0]): row[1:] for row in self.target.rows(theirs, some)}
        return source, target

    def _documents(self, rows: int) -> Values:
        """The differing documents of rows that both sides have."""
        names = self.comparison.documents.source
        if not names:
            return {}
        groups = max(1, -(-rows // DOCUMENT_ROWS))
        found: Values = {}
        for group in range(groups):
            query = self.comparison.documents_query
            ours = self.source.ask([(query(self.comparison.source, self.source.name, group, groups), ())])[0]
            theirs = self.target.rows(query(self.comparison.target, self.name, group, groups, self.own_rows))
            found |= differing_texts(names, ours, theirs)
        return found


def _hashed(rows: Sequence[Sequence[object]]) -> list[HashedRow]:
    return [(str(key), int(str(value)), int(str(left_out))) for key, value, left_out in rows]
