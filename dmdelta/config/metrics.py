"""Section `metrics`: figures for Prometheus."""

from pydantic import Field

from dmdelta.config.section import Section


class MetricsConfig(Section):
    """Where `dmdelta run` answers `/metrics` while it runs."""

    host: str = "127.0.0.1"
    """The address to listen at. Whoever reaches it can read table names and positions, without a password: other
    machines only if `host` says so."""

    port: int = Field(default=9262, ge=0, le=65535)
    """The port; 0 for any that is free, which the log names."""
