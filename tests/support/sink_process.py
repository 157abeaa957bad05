"""A sink in its own process, on changes that Spark has already read from bronze: starts fast, can be killed.

`python -m tests.support.sink_process FILE` executes all recorded changes of `FILE` (a pickled `Recorded`).
"""

import pickle
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dmdelta.changelog.context import SourceContext
from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.sink.execution_log import ExecutedEvents
from dmdelta.sink.read.change_reader import Past, SliceReader, TableChanges, left_over
from dmdelta.sink.read.slices import Rows, Slice, Survey, merged_rows
from dmdelta.sink.settings import SinkSettings
from dmdelta.sink.sink import Sink
from dmdelta.sink.startup import open_sink

NOTHING = ExecutedEvents()


@dataclass(frozen=True)
class Recorded:
    """A range of bronze as the sink reads it: its survey, and each table's changes by structure."""

    survey: Survey
    tables: list[tuple[Rows, TableChanges]]
    source: SourceContext
    settings: SinkSettings


@dataclass(frozen=True)
class RecordedLog:
    recorded: Survey

    def tables_of(self, schema: str) -> list[TableName]:
        return sorted({rows.name for rows in self.recorded.rows if rows.name[0] == schema})

    def survey(self, begin: Position, end: Position) -> Survey:
        whole = self.recorded
        cuts = [cut for cut in whole.cuts if begin < cut.position < end]
        statements = [one for one in whole.statements if begin <= one.position < end]
        return Survey(begin, end, whole.rows, cuts, statements)


@dataclass(frozen=True)
class RecordedReader:
    log: RecordedLog
    tables: Any
    recorded: Recorded
    executed: ExecutedEvents

    def read(self, part: Slice) -> list[list[TableChanges]]:
        found = []
        for rows, one in self.recorded.tables:
            inside = (one.columns.seq >= part.begin.seq) & (one.columns.seq < part.end.seq)
            if inside.any():
                route = self.recorded.source.rules.route(*rows.name)
                self.tables.plan(rows.name, rows.version, one.plan.schema, route)
                found.append([left_over(one.plan, one.columns.where(inside), Past(part.begin.epoch, self.executed))])
        return found


def record_range(reader: SliceReader, begin: Position, end: Position) -> tuple[Survey, list[tuple[Rows, TableChanges]]]:
    """Read a range once with Spark; the target's tables exist and do not change."""
    survey = reader.log.survey(begin, end)
    tables = []
    for rows in merged_rows(survey.rows):
        part = Slice(begin, end, True, (rows,))
        tables += [(rows, one) for group in replace(reader, executed=NOTHING).read(part) for one in group]
    return survey, tables


def run(recorded: Recorded, run_id: str) -> Sink:
    """Execute the whole range."""
    source = replace(recorded.source, run=run_id)
    sink = open_sink(None, source, recorded.settings, recorded.survey.end)  # type: ignore[arg-type]
    sink.statements.log = RecordedLog(recorded.survey)  # type: ignore[assignment]
    sink.reader = RecordedReader(sink.statements.log, sink.tables, recorded, sink.executed)  # type: ignore[assignment]
    orderly = False
    try:
        sink.apply(recorded.survey.begin, recorded.survey.end, lambda: False)
        orderly = True
    finally:
        sink.end(orderly=orderly)
    return sink


if __name__ == "__main__":
    run(pickle.loads(Path(sys.argv[1]).read_bytes()), sys.argv[2])  # noqa: S301
