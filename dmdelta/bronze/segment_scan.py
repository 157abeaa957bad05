"""Scans segments before they land: for their DDL statements, and for the tables whose rows they contain."""

from collections.abc import Iterable

from dmdelta.binlog.rows.ddl_scan import scan_statements, scan_tables
from dmdelta.ddl.parse.session import without_session
from dmdelta.model.schema import TableName
from dmdelta.model.segment import Segment
from dmdelta.model.statement import LoggedStatement
from dmdelta.segments import open_segment, skipped_in


def statements_of(segment: Segment) -> list[LoggedStatement]:
    """The DDL statements of a segment, in log order, without those that decoding skips.

    Raises:
        CorruptBinlog: not a binlog file, an event cut short, or sizes that do not add up.
    """
    with open_segment(segment) as stream:
        return scan_statements(stream, segment, without_session, skipped_in(segment))


def tables_of(segments: Iterable[Segment]) -> set[TableName] | None:
    """The tables whose rows the segments contain; None if they cannot be listed: any table may be among them.

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
