"""The columns of a bronze row. ARCHITECTURE.md has the contract."""

DECODED_SCHEMA = """
source_id STRING, epoch INT, seq BIGINT, row INT, binlog_file STRING, binlog_pos BIGINT, gtid STRING,
committed_at TIMESTAMP, schema_name STRING, table_name STRING, op STRING, xid STRING, image ARRAY<STRING>,
key_changed BOOLEAN, ddl STRING, schema_version BIGINT, before VARIANT, after VARIANT
"""
"""The columns of the data source `mysql_binlog`, as Spark DDL."""

LANDED_SCHEMA = ", landed_at TIMESTAMP, landed_on DATE"
BRONZE_SCHEMA = DECODED_SCHEMA + LANDED_SCHEMA
PARTITION_COLUMN = "landed_on"
SKIPPING_COLUMNS = ("source_id", "epoch", "seq", "committed_at", "schema_name", "table_name", "op", "xid", "ddl")
"""Delta keeps minimum, maximum and the number of NULLs of these columns for each file."""
