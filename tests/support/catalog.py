"""Table structures as the source's catalog tells them, for servers whose log has no column names."""

from collections.abc import Sequence

from dmdelta.model.schema import TableSchema
from dmdelta.source.catalog import read_schemas
from tests.support.servers import Server


def structures_of(server: Server, database: str) -> Sequence[TableSchema]:
    """The present structures of a database's tables."""
    with server.connect(server.user) as connection:
        return read_schemas(connection, lambda schema, _: schema == database)
