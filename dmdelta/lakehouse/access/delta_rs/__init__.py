"""Tables accessed with delta-rs, without Spark: in a folder of this machine, or in an object store."""
