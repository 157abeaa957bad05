"""The inputs of decoding besides the segment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dmdelta.binlog.events.statement import StatementTarget
from dmdelta.model.gtid import GtidSet
from dmdelta.model.recorded import RecordedStructures
from dmdelta.model.schema import StructureFrom, TableSchema
from dmdelta.model.segment import Segment
from dmdelta.model.statement import Session

WithoutSession = Callable[[str, Session], str]


def as_written(sql: str, _session: Session) -> str:
    """The text as the log has it."""
    return sql


@dataclass(frozen=True)
class DecodeOptions:
    """What to decode, and what is known in advance.

    Attributes:
        wanted: (schema, table) → decode its rows.
        wanted_statements: (schema, table) → record its DDL; None: as `wanted`.
        known_schemas: structures of tables for table maps without column names, oldest first.
        structures: by table, its structures with their start positions, in log order, for table maps without column
            names: takes precedence over `known_schemas`.
        statement_targets: (sql, default schema) → the tables or databases that a DDL statement changes.
        without_session: the text of a DDL statement to record, which does not depend on its session.
        recorded: the structures that `schema` rows before the segment have recorded; decoding updates them. None: there
            are none, so the segment records each structure.
        skipped: (segment) → the transactions that are left out of it, as if the log did not contain them; None: none.
        batch_bytes: bytes of events after which a batch is emitted.
        batch_rows: rows after which a batch is emitted: small rows occupy many times the bytes of their events.
    """

    wanted: Callable[[str, str], bool]
    known_schemas: Mapping[tuple[str, str], Sequence[TableSchema]] = field(default_factory=dict)
    structures: Mapping[tuple[str, str], Sequence[StructureFrom]] = field(default_factory=dict)
    statement_targets: Callable[[str, str], Sequence[StatementTarget]] = lambda _sql, _schema: ()
    without_session: WithoutSession = as_written
    wanted_statements: Callable[[str, str], bool] | None = None
    recorded: RecordedStructures | None = None
    skipped: Callable[[Segment], GtidSet | None] = lambda _segment: None
    batch_bytes: int = 8 << 20
    batch_rows: int = 250_000
