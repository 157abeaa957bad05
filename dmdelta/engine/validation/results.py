"""What `dmdelta validate` is asked to compare, and what it reports of each table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from dmdelta.model.position import Position
from dmdelta.model.schema import TableName
from dmdelta.quality.reconcile import Kind


class Against(str, Enum):
    """What the source is compared with."""

    SILVER = "silver"
    SINK = "sink"
    """The target of the spec's sink."""


@dataclass(frozen=True, slots=True)
class ValidateRequest:
    """What to compare.

    Attributes:
        table: `schema.table`, with `*` and `?` for several.
        source: one of the task's sources; None: all.
        threads: connections that read the source at the same time.
        limit: rows of each table that are shown with their values.
        wait: seconds to wait for what the source has to land, and for the sink to execute it.
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
    """What comparing a table came to."""

    SAME = "same"
    DIFFERS = "differs"
    PARTLY_COMPARED = "partly compared"
    """Nothing differs in the columns and rows that were compared: some were not."""
    NOT_COMPARED = "not compared"
    """It should have been."""
    EXCLUDED = "excluded"
    """There is nothing to compare, or the spec makes the two sides differ."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that differs.

    Attributes:
        key: its canonical text (`dmdelta.quality.canonical`).
        values: by column that differs, the source's and the other side's text; None where there is no row.
    """

    kind: Kind
    key: str
    values: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """What comparing a table has found.

    Attributes:
        source: its id.
        reason: why it was not compared, or what stands in the way of its repair.
        position: where in the log both sides were compared.
        rows, silver_rows, sink_rows: how many rows of either side were compared.
        missing, extra, different: rows that only the source has, that only the other side has, and that differ.
        not_looked_at: buckets of rows that differ, beyond those whose rows were compared one by one.
        left_out_rows: rows of the source that were not compared, because a filter of the spec decides about them.
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
        """Nothing is left that an operator has to look at."""
        repaired = self.fixed and not self.not_looked_at and not self.uncompared
        return repaired or self.status in (Outcome.SAME, Outcome.EXCLUDED)


def outcome_of(*, differs: bool, uncompared: bool) -> Outcome:
    """What the comparison of a table came to: some of it differs, some of it could not be compared."""
    if differs:
        return Outcome.DIFFERS
    return Outcome.PARTLY_COMPARED if uncompared else Outcome.SAME


def shown(name: TableName) -> str:
    """A table's name as reports have it."""
    return ".".join(name)
