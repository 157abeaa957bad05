"""Section `snapshot`: how tables are loaded before the binlog is followed."""

from typing import Literal

from pydantic import Field, model_validator

from dmdelta.config.section import Section


class SnapshotConfig(Section):
    """The full load of task-mode `full` and `all`."""

    bronze: bool = True
    """Whether the rows of big tables land in bronze, too. Without, they go straight to silver, which can then not be
    built anew from bronze. Tables of one chunk (50,000 rows, or no key) always land in bronze, as do merged ones."""

    consistency: Literal["none", "snapshot"] = "none"
    """`none` locks nothing: the log from the load's begin to its end is applied over what was read. `snapshot` locks
    all tables for a moment (the account needs RELOAD), in which all readers open the same snapshot: every table is read
    as it was then. It cannot be gone on with after a kill: it is begun again."""

    readers: int = Field(default=2, ge=1)
    """How many readers share the snapshot of `consistency: snapshot`. Each takes a task slot of Spark as it reads."""

    @model_validator(mode="after")
    def _one_commit(self) -> "SnapshotConfig":
        if self.consistency == "snapshot" and not self.bronze:
            raise ValueError("`consistency: snapshot` reads all tables at once, to bronze: leave `bronze: false` out")
        return self
