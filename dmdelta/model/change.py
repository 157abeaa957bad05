"""What a bronze row says happened."""

from enum import Enum


class Op(str, Enum):
    """The `op` of a bronze row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    READ = "read"
    """A row read by a snapshot."""
    WATERMARK = "watermark"
    """Where a source's log was before a snapshot read a chunk; `ddl` holds it as JSON (file, pos, gtid_set,
    exact: the rows are those of that position)."""
    DDL = "ddl"
    TRUNCATE = "truncate"
    SCHEMA = "schema"
    """The structure of a table from here on; `ddl` holds it as JSON (`TableSchema.to_json`)."""
    XA_COMMIT = "xa_commit"
    """The rows prepared under this row's `xid` take effect."""
    XA_ROLLBACK = "xa_rollback"
    """The rows prepared under this row's `xid` never take effect."""


ROW_OPS = (Op.INSERT, Op.UPDATE, Op.DELETE, Op.READ)
