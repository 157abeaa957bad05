"""Section `metrics`: the status page and the Prometheus endpoint."""

from pydantic import Field

from dmdelta.config.section import Section


class MetricsConfig(Section):
    """Where `dmdelta run` serves its status page and `/metrics` while it runs."""

    host: str = "127.0.0.1"
    """The listen address. The pages show table names and positions without a password, so they are served to
    the local machine only unless `host` is set."""

    port: int = Field(default=9262, ge=0, le=65535)
    """The port; 0 picks a free port, which is logged."""
