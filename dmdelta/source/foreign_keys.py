"""The foreign keys of a source table."""

from contextlib import closing

from dmdelta.model.schema import ForeignKey, TableName
from dmdelta.source.connection import open_connection, query
from dmdelta.source.endpoint import Endpoint

_KEYS = """
SELECT constraint_name, referenced_table_schema, referenced_table_name, column_name, referenced_column_name
FROM information_schema.key_column_usage
WHERE table_schema = %s AND table_name = %s AND referenced_table_name IS NOT NULL
ORDER BY constraint_name, ordinal_position
"""


def read_foreign_keys(endpoint: Endpoint, table: TableName) -> list[ForeignKey]:
    """The foreign keys that the table has now.

    Raises:
        SourceUnavailable, SourceError: the server does not answer, or refuses the query.
    """
    keys: dict[str, ForeignKey] = {}
    with closing(open_connection(endpoint)) as connection:
        for name, schema, parent, column, referenced in query(connection, _KEYS, table):
            before = keys.get(name)
            columns = (*(before.columns if before else ()), (str(column), str(referenced)))
            keys[name] = ForeignKey(str(name), table, (str(schema), str(parent)), columns)
    return list(keys.values())
