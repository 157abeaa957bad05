"""The location of tables: a folder or a catalog, and the SQL identifiers of the tables in it."""

import hashlib
import re
from dataclasses import dataclass

from dmdelta.errors import ConfigError
from dmdelta.model.spark_sql import quote

MOST_BYTES = 200
_PLAIN = re.compile(r"[^\w.$-]")


@dataclass(frozen=True, slots=True)
class Lakehouse:
    """A lakehouse in a `root` folder (any URL that Spark can write to) or in a Unity-style `catalog`.

    Attributes:
        root: `<root>/<bronze>`, `<root>/<silver>/<schema>/<table>`, `<root>/<metadata>/<name>`.
        catalog: `<catalog>.<bronze>.events`, `<catalog>.<schema>.<table>`, `<catalog>.<metadata>.<name>`.

    Raises:
        ConfigError: neither or both of root and catalog are given.
    """

    root: str | None = None
    catalog: str | None = None
    bronze_name: str = "bronze"
    silver_name: str = "silver"
    metadata_name: str = "dm_meta"

    def __post_init__(self) -> None:
        if (self.root is None) == (self.catalog is None):
            raise ConfigError(
                "a lakehouse requires exactly one of root and catalog", hint="set lakehouse.root or lakehouse.catalog"
            )

    @property
    def bronze(self) -> str:
        """The SQL identifier of the bronze table."""
        return self._path(self.bronze_name) if self.root is not None else self._named(self.bronze_name, "events")

    def silver(self, schema: str, table: str) -> str:
        """The SQL identifier of the silver table of a source table."""
        if self.root is not None:
            return self._path(self.silver_name, _folder(schema), _folder(table))
        return self._named(schema, table)

    def metadata(self, name: str) -> str:
        """The SQL identifier of a metadata table."""
        return self._path(self.metadata_name, _folder(name)) if self.root else self._named(self.metadata_name, name)

    def schema_of(self, name: str) -> str | None:
        """The SQL identifier of the schema that must exist before a table in it; None in a root folder."""
        return f"{quote(self.catalog)}.{quote(name)}" if self.catalog is not None else None

    def _path(self, *parts: str) -> str:
        return "delta." + quote("/".join([(self.root or "").rstrip("/"), *parts]))

    def _named(self, schema: str, table: str) -> str:
        return f"{quote(self.catalog or '')}.{quote(schema)}.{quote(table)}"


def _folder(name: str) -> str:
    """A unique folder name for any name: letters and digits of every script are kept, others become `~<hex>`."""
    plain = _PLAIN.sub(lambda match: _escaped(match.group()), name)
    # Spark treats files with such names as hidden; `.` and `..` are not valid folder names.
    if plain[:1] in ("_", "."):
        plain = _escaped(plain[:1]) + plain[1:]
    if len(plain.encode()) <= MOST_BYTES:
        return plain
    # File systems allow at most 255 bytes. Escapes contain no such letters, so no other name results in the same
    # folder.
    begin = plain.encode()[: MOST_BYTES - 42].decode(errors="ignore")
    return f"{begin}~x{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:40]}"


def _escaped(sign: str) -> str:
    """Of a length determined by its first letter, because the next character may be a digit."""
    code = ord(sign)
    return f"~{code:02x}" if code < 0x100 else f"~u{code:06x}"
