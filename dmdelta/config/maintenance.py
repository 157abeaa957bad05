"""Section `maintenance`: care for the tables while a task runs."""

from pydantic import Field

from dmdelta.config.section import Section


class MaintenanceConfig(Section):
    """Small files become larger ones, clustered by the key; rows that deletion vectors hide, and old files, go."""

    automatic: bool = True
    """Whether a task that runs on and on does that by itself, to one table at a time while the others go on. Not needed
    where the catalog does it, such as Databricks' predictive optimization. `dmdelta maintain` does it at any time."""
    bronze_days: int | None = Field(default=None, ge=1)
    """So many days after it has landed, a row change goes from bronze, if it is in silver, in the sink's target and
    validated by then; statements and structures stay. What replays, ranges and a new sink need is gone then, and they
    say so. Without: bronze is kept for ever. A running task looks every ten minutes, `dmdelta maintain` each time."""
