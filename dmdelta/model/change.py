"""The operation of a bronze row."""

from enum import Enum


class Op(str, Enum):
    """The `op` of a bronze row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    READ = "read"
    """A row read by a snapshot."""
    WATERMARK = "watermark"
    """The position of a source's log before a snapshot read a chunk; `ddl` holds it as JSON (file, pos, gtid_set,
    exact: the rows are as of that position)."""
    DDL = "ddl"
    TRUNCATE = "truncate"
    SCHEMA = "schema"
    """The schema of a table from this position on; `ddl` holds it as JSON (`TableSchema.to_json`)."""
    XA_COMMIT = "xa_commit"
    """The rows prepared under this row's `xid` take effect."""
    XA_ROLLBACK = "xa_rollback"
    """The rows prepared under this row's `xid` never take effect."""


ROW_OPS = (Op.INSERT, Op.UPDATE, Op.DELETE, Op.READ)
