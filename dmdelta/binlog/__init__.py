"""The codec: decodes binlog bytes to columns of changes, with row images as VARIANT bytes.

Owns the formats: framing and checksums, events of MySQL 5.7 to 9.x and MariaDB, table maps, row images, MySQL's binary
JSON, character sets, and the definition of a transaction boundary. One row decoder is generated per distinct table map.
Must not know where the bytes come from or go to: no I/O beyond the given stream, no Spark, no Arrow, no server.
"""
