"""The source: everything that talks to a MySQL or MariaDB server, and the relay that keeps its binlog as segments.

Owns the connection (TLS, retries), flavor and position of a server, preflight, information_schema, the dump client, and
the relay process that splits the stream into segments at transaction boundaries. `WaitingRelay` is the engine's
entry point; `plan_connect` decides how a relay resumes after a lost connection.
Must not depend on row contents, Spark, bronze or checkpoints: it decodes no row and runs without a JVM.
"""
