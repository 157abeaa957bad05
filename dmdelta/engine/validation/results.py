"""The request of `dmdelta validate`, and its result for each table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.reconcile import Kind


class Against(str, Enum):
    """The side that the source is compared with."""

    SILVER = "silver"
    SINK = "sink"
    """The target of the spec's sink."""


@dataclass(frozen=True, slots=True)
class ValidateRequest:
    """What to compare.

    Attributes:
        table: `schema.table`; `*` and `?` match several.
        source: one of the task's sources; None: all.
        threads: connections that read the source in parallel.
        limit: maximum number of rows per table that are shown with their values.
        wait: seconds to wait until bronze, and the sink, reach the source's position.
        fix: repair silver.
    """

    table: str = "*"
    source: str | None = None
    threads: int = 2
    limit: int = 20
    wait: float = 60.0
    fix: bool = False
    against: Against = Against.SILVER


class Outcome(str, Enum):
    """The outcome of comparing a table."""

    SAME = "same"
    DIFFERS = "differs"
    PARTLY_COMPARED = "partly compared"
    """The compared columns and rows are equal, but some were not compared."""
    NOT_COMPARED = "not compared"
    """The comparison was not possible."""
    EXCLUDED = "excluded"
    """There is nothing to compare, or the spec makes the two sides differ."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs.

    Attributes:
        key: its canonical text (`dmdelta.quality.canonical`).
        values: the source's and the other side's text, by differing column; None if that side has no row.
    """

    kind: Kind
    key: str
    values: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """The result of comparing a table.

    Attributes:
        source: the source's id.
        reason: why it was not compared, or not repaired.
        position: the position of the log as of which both sides were compared.
        rows, silver_rows, sink_rows: number of compared rows of each side.
        missing, extra, different: rows that only the source has, that only the other side has, and that differ.
        not_looked_at: number of differing buckets whose rows were not compared one by one.
        left_out_rows: rows of the source that were not compared, because a filter of the spec applies to them.
        uncompared: columns that only one side has, or whose type has no canonical text.
        differences: the first rows that differ, with their values.
        fixed: silver was repaired.
    """

    source: str
    table: str
    against: Against = Against.SILVER
    status: Outcome
    reason: str | None = None
    position: Position | None = None
    rows: int | None = None
    silver_rows: int | None = None
    sink_rows: int | None = None
    missing: int = 0
    extra: int = 0
    different: int = 0
    not_looked_at: int = 0
    left_out_rows: int = 0
    uncompared: tuple[str, ...] = ()
    differences: tuple[RowDifference, ...] = ()
    fixed: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether no difference is left that requires an operator."""
        repaired = self.fixed and not self.not_looked_at and not self.uncompared
        return repaired or self.status in (Outcome.SAME, Outcome.EXCLUDED)


def outcome_of(*, differs: bool, uncompared: bool) -> Outcome:
    """The outcome of a comparison, given whether rows differ and whether columns were not compared."""
    if differs:
        return Outcome.DIFFERS
    return Outcome.PARTLY_COMPARED if uncompared else Outcome.SAME


def shown(name: TableName) -> str:
    """A table's name, as in reports."""
    return ".".join(name)
