"""Section `live`: freshness of live reads while a task runs."""

from datetime import timedelta

from pydantic import model_validator

from dmdelta.config.section import Duration, Section


class LiveConfig(Section):
    """How often bronze, which live reads (`dmdelta sql`, `dmdelta.live`) see, gets the newest changes. Without the
    section, as often as silver needs them.
    """

    landing_interval: Duration = timedelta(seconds=1)
    """Time between two batches. If a batch takes more than half of it, the interval is longer: silver needs the rest of
    the time. When a batch is due, the relay publishes the transactions that it has. Every batch costs a commit and a
    small file, which maintenance compacts."""
    views: bool = False
    """Whether a running task maintains a view `<schema>.<table>_live` for each silver table, which any reader of the
    catalog can query. Requires `lakehouse.catalog`."""

    @model_validator(mode="after")
    def _interval_is_positive(self) -> "LiveConfig":
        if self.landing_interval <= timedelta(0):
            raise ValueError("landing-interval must be longer than 0s")
        return self
