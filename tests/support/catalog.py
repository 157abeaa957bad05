"""Table structures from the source's catalog, for servers whose log has no column names."""

from collections.abc import Sequence

from dmdelta.model.schema import TableSchema
from dmdelta.source.catalog import read_schemas
from tests.support.servers import Server


def structures_of(server: Server, database: str) -> Sequence[TableSchema]:
    """The current structures of a database's tables."""
    with server.connect(server.user) as connection:
        return read_schemas(connection, lambda schema, _: schema == database)


class Observer:
    """Collects every structure that it has read of a database's tables, as a running task does."""

    def __init__(self, server: Server, database: str) -> None:
        self._server = server
        self._database = database
        self._seen: dict[int, TableSchema] = {}

    def look(self) -> None:
        """Read the catalog, if the log itself does not contain the structures."""
        if self._server.name == "mysql57":
            for structure in structures_of(self._server, self._database):
                self._seen.setdefault(structure.version, structure)

    def structures(self) -> Sequence[TableSchema]:
        """All collected structures, older ones first."""
        return tuple(self._seen.values())

    def by_name(self) -> dict[tuple[str, str], list[TableSchema]]:
        """The collected structures by table."""
        found: dict[tuple[str, str], list[TableSchema]] = {}
        for structure in self._seen.values():
            found.setdefault((structure.schema, structure.table), []).append(structure)
        return found
