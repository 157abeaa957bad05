"""Section `snapshot`: how tables are loaded before binlog replication starts."""

from typing import Literal

from pydantic import Field, model_validator

from dmdelta.config.section import Section


class SnapshotConfig(Section):
    """The full load of task-mode `full` and `all`."""

    bronze: bool = True
    """Whether the rows of large tables are also written to bronze. With `false` they are written directly to silver,
    which can then not be rebuilt from bronze. Tables of one chunk (50,000 rows, or without a key) and merged tables are
    always written to bronze."""

    consistency: Literal["none", "snapshot"] = "none"
    """`none` takes no locks: the log from the start of the load to its end is applied over the rows that were read.
    `snapshot` briefly locks all tables (the account needs RELOAD) while all readers open the same snapshot, so that
    every table is read as of that moment. Such a load cannot resume after a kill: it starts over."""

    readers: int = Field(default=2, ge=1)
    """How many readers share the snapshot of `consistency: snapshot`. Each uses a Spark task slot while it reads."""

    @model_validator(mode="after")
    def _one_commit(self) -> "SnapshotConfig":
        if self.consistency == "snapshot" and not self.bronze:
            raise ValueError("`consistency: snapshot` reads all tables at once, into bronze: remove `bronze: false`")
        return self
