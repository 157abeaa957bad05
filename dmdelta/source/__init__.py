"""The source: everything that talks to a MySQL or MariaDB server, and the relay that keeps its binlog as segments.

Owns the connection (TLS, retries), flavor and position of a server, preflight, information_schema, the dump client, and
the relay process that cuts the stream into segments at transaction boundaries. `start_relay` is the engine's entry;
`plan_connect` decides how a relay goes on after a break.
Must not know what a row holds, nor anything of Spark, bronze or checkpoints: it decodes no row and runs without a JVM.
"""
