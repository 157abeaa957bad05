"""Section `maintenance`: maintenance of the tables while a task runs."""

from pydantic import Field

from dmdelta.config.section import Section


class MaintenanceConfig(Section):
    """Compacts small files, clusters them by the key, purges rows that deletion vectors hide, and removes old files
    and commits.
    """

    automatic: bool = True
    """Whether a running task performs maintenance automatically, on one table at a time while the others continue. Not
    needed where the catalog does it, such as with Databricks' predictive optimization. `dmdelta maintain` performs it
    on demand."""
    bronze_days: int | None = Field(default=None, ge=1)
    """Days after which a row change is removed from bronze, provided that it is in silver, in the sink's target and
    validated; statements and schemas are kept. Replays, ranges and new sinks that need removed changes then fail with
    an error that says so. Without it, bronze is kept indefinitely. A running task checks every ten minutes, `dmdelta
    maintain` on each run."""
