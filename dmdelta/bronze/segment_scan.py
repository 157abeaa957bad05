"""What landing must know of segments before they land: their DDL statements, and which tables they have rows of."""

from collections.abc import Iterable

from dmdelta.binlog.rows.ddl_scan import scan_statements, scan_tables
from dmdelta.model.schema import TableName
from dmdelta.model.segment import Segment
from dmdelta.model.statement import LoggedStatement
from dmdelta.segments import open_segment


def statements_of(segment: Segment) -> list[LoggedStatement]:
    """The statements of a segment that change structures, in log order.

    Raises:
        CorruptBinlog: not a binlog file, an event cut short, or sizes that do not add up.
    """
    with open(segment.path, "rb") as stream:
        return scan_statements(stream, segment)


def tables_of(segments: Iterable[Segment]) -> set[TableName] | None:
    """The tables that segments have rows of; None: all, for all one can see.

    Raises:
        CorruptBinlog: as `statements_of`, or a table map that is cut short.
    """
    found = set[TableName]()
    for segment in segments:
        with open_segment(segment) as stream:
            tables = scan_tables(stream, segment)
        if tables is None:
            return None
        found |= tables
    return found
