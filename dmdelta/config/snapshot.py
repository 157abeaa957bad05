"""Section `snapshot`: how tables are loaded before the binlog is followed."""

from dmdelta.config.section import Section


class SnapshotConfig(Section):
    """The full load of task-mode `full` and `all`."""

    bronze: bool = True
    """Whether the rows of big tables land in bronze, too. Without, they go straight to silver, which can then not be
    built anew from bronze. Tables of one chunk (50,000 rows, or no key) always land in bronze."""
