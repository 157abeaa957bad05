"""Where a server is and how to log in: the only part of a spec that this package needs."""

from dataclasses import asdict, dataclass, field
from typing import Any

from dmdelta.model.gtid import Flavor
from dmdelta.model.tls import Tls


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server and an account on it.

    Attributes:
        flavor: None: detected from the server.
        server_id: None: a random one is used.
    """

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: Tls | None = None
    flavor: Flavor | None = None
    server_id: int | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def to_dict(self) -> dict[str, Any]:
        """Includes the password: for a pipe, never for a log or a command line."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Endpoint":
        tls = fields["tls"]
        return cls(**{**fields, "tls": Tls(**tls) if tls else None})
