"""Histories, and the tables of dm_meta: one interface, implemented with delta-rs for a local root and with Spark.

delta-rs is the Rust implementation of Delta: its look-ups and appends need no JVM. `choice` selects the implementation;
everything except `spark` and `choice` is importable without PySpark.
"""
