"""Section `maintenance`: care for the tables while a task runs."""

from dmdelta.config.section import Section


class MaintenanceConfig(Section):
    """Small files become larger ones, clustered by the key; rows that deletion vectors hide, and old files, go."""

    automatic: bool = True
    """Whether a task that runs on and on does that by itself, to one table at a time while the others go on. Not needed
    where the catalog does it, such as Databricks' predictive optimization. `dmdelta maintain` does it at any time."""
