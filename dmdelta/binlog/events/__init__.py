"""The events of a binlog: framing, checksums, headers, transaction boundaries, statements and compression."""
