"""The validator's status and errors, and operators' decisions on them: `dmdelta validate status`, `show-error` etc."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from dmdelta.config import TaskSpec
from dmdelta.engine.task.task import Task, open_metadata
from dmdelta.engine.validation.store import (
    VALIDATOR,
    RowError,
    ValidatorProgress,
    count_errors,
    read_errors,
    read_progress,
    remove_errors,
    set_states,
)
from dmdelta.engine.validation.validator_tables import validated_tables
from dmdelta.errors import ConfigError
from dmdelta.quality.pending import ErrorState


@dataclass(frozen=True, slots=True)
class Skipped:
    """A table (`schema.table`), or a column of one, that the validator does not compare."""

    source_id: str
    table: str
    why: str


class Validity(str, Enum):
    """Whether the validator compares a table."""

    VALIDATED = "validated"
    """Changed rows of it were compared."""
    NO_CHANGES = "no changes"
    """No row of it has changed since the validator's first start."""
    NOT_VALIDATED = "not validated"
    """It is not compared; `reason` has the cause."""


@dataclass(frozen=True, slots=True)
class TableValidity:
    """The validator's status of one table (`schema.table`).

    Attributes:
        rows: rows that were compared and are equal, since the validator's first start.
    """

    source_id: str
    table: str
    status: Validity
    rows: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ValidatorStatus:
    """The status of a source's validator, as of its newest flush.

    Attributes:
        validated_to: changes before this position were compared.
        validated_rows: rows that were compared and are equal, since its first start.
        pending_rows: rows that differ, but not long enough to be errors.
        new_errors, ignored_errors, resolved_errors: rows that differed for longer than the validator's delay.
        trouble: why it makes no progress.
        not_validated: tables and columns that are not compared.
        tables: every table of the source; empty if they were not requested.
    """

    source_id: str
    mode: str
    validated_to: str | None
    validated_rows: int
    pending_rows: int
    new_errors: int
    ignored_errors: int
    resolved_errors: int
    trouble: str | None
    not_validated: tuple[Skipped, ...]
    tables: tuple[TableValidity, ...] = ()


TablesOf = Callable[[str, ValidatorProgress], Collection[TableValidity]]


@dataclass(frozen=True, slots=True)
class ErrorChoice:
    """Selects errors.

    Attributes:
        ids: error ids, None for all.
        table: `schema.table`, None for all.
        state: None for any.
    """

    ids: Collection[str] | None = None
    table: str | None = None
    state: ErrorState | None = None

    def fits(self, error: RowError) -> bool:
        return (
            (self.ids is None or error.error in self.ids)
            and self.table in (None, f"{error.schema}.{error.table}")
            and self.state in (None, error.state)
        )


def validator_status(task: Task, tables: TablesOf | None = None) -> list[ValidatorStatus]:
    """The status of each source's validator; empty if none has ever run.

    Args:
        tables: returns the status of each table, given a source's id and its progress.

    Raises:
        LakehouseError: the table cannot be read.
    """
    table = VALIDATOR.of(task.spark, task.lakehouse, task.spec.name)
    errors = read_errors(table)
    statuses: list[ValidatorStatus] = []
    for source_id, (progress, pending) in sorted(read_progress(table).items()):
        counts = count_errors(error for error in errors if error.source_id == source_id)
        skipped = tuple(Skipped(source_id, name, why) for name, why in sorted(progress.skipped.items()))
        position = str(progress.position) if progress.position else None
        statuses.append(
            ValidatorStatus(
                source_id=source_id,
                mode=progress.mode,
                validated_to=position,
                validated_rows=progress.validated,
                pending_rows=pending,
                new_errors=counts[ErrorState.NEW],
                ignored_errors=counts[ErrorState.IGNORED],
                resolved_errors=counts[ErrorState.RESOLVED],
                trouble=progress.trouble,
                not_validated=skipped,
                tables=tuple(tables(source_id, progress)) if tables is not None else (),
            )
        )
    return statuses


def show_status(task: Task) -> list[ValidatorStatus]:
    """The status of each source's validator, with all of its tables.

    Raises:
        LakehouseError: the table cannot be read.
    """
    return validator_status(task, lambda source_id, progress: _tables(task, source_id, progress))


def _tables(task: Task, source_id: str, progress: ValidatorProgress) -> list[TableValidity]:
    config = next((source for source in task.spec.sources if source.source_id == source_id), None)
    if config is None:  # the source was removed from the spec
        return []
    known = validated_tables(task, config, progress.by_table.keys())
    known |= {name: None for name in progress.by_table if name not in known}
    tables: list[TableValidity] = []
    for name, why in sorted(known.items()):
        rows = progress.by_table.get(name, 0)
        reason = progress.skipped.get(name, None if rows else why)
        status = Validity.VALIDATED if rows else Validity.NO_CHANGES
        tables.append(TableValidity(source_id, name, Validity.NOT_VALIDATED if reason else status, rows, reason))
    return tables


def show_errors(spec: TaskSpec, choice: ErrorChoice) -> list[RowError]:
    """The selected errors, sorted by source, table and key.

    Raises:
        LakehouseError: the table cannot be read.
    """
    task = open_metadata(spec)
    return _chosen(task, choice)


def decide_errors(spec: TaskSpec, choice: ErrorChoice, state: ErrorState) -> list[RowError]:
    """Mark errors as ignored or resolved. Returns the changed errors.

    Raises:
        ConfigError: an id does not exist.
        LakehouseError: the table cannot be read or written.
    """
    task = open_metadata(spec)
    return set_states(VALIDATOR.of(task.spark, task.lakehouse, spec.name), _known(task, choice), state)


def clear_errors(spec: TaskSpec, choice: ErrorChoice) -> list[RowError]:
    """Delete errors, including the stored values of their rows. Returns the deleted errors.

    Raises:
        ConfigError: an id does not exist.
        LakehouseError, CommitConflict: the table cannot be read or written.
    """
    task = open_metadata(spec)
    errors = _known(task, choice)
    remove_errors(VALIDATOR.of(task.spark, task.lakehouse, spec.name), errors)
    return errors


def _chosen(task: Task, choice: ErrorChoice) -> list[RowError]:
    return [
        error for error in read_errors(VALIDATOR.of(task.spark, task.lakehouse, task.spec.name)) if choice.fits(error)
    ]


def _known(task: Task, choice: ErrorChoice) -> list[RowError]:
    errors = _chosen(task, choice)
    missing = sorted(set(choice.ids or ()) - {error.error for error in errors})
    if missing:
        raise ConfigError(f"there is no error {missing[0]}", hint="`dmdelta validate show-error SPEC` lists the errors")
    return errors
