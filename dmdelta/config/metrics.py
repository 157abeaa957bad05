"""Section `metrics`: the Prometheus endpoint."""

from pydantic import Field

from dmdelta.config.section import Section


class MetricsConfig(Section):
    """Where `dmdelta run` serves `/metrics` while it runs."""

    host: str = "127.0.0.1"
    """The listen address. The endpoint exposes table names and positions without a password, so it listens on the local
    machine only unless `host` is set."""

    port: int = Field(default=9262, ge=0, le=65535)
    """The port; 0 picks a free port, which is logged."""
