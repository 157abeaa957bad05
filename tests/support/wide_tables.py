"""Tables with very many columns of alternating types, and statements that fill and change them."""

from collections.abc import Callable
from dataclasses import dataclass

_KINDS: tuple[tuple[str, Callable[[int], str]], ...] = (
    ("INT", lambda n: str(n * 7919 - 2**20)),
    ("VARCHAR(3)", lambda n: f"'{n % 100}é'"),
    ("DECIMAL(9,2)", lambda n: f"-{n * 37 % 10**7}.{n % 100:02d}"),
    ("DATETIME(3)", lambda n: f"'2024-02-{n % 28 + 1:02d} 10:11:{n % 60:02d}.{n % 1000:03d}'"),
    ("DOUBLE", lambda n: f"{n}.5e{n % 9 - 4}"),
    ("TINYINT UNSIGNED", lambda n: str(n % 256)),
    ("DATE", lambda n: f"'19{n % 90 + 10}-{n % 12 + 1:02d}-28'"),
    ("TEXT", lambda n: f"'{'ä' * (n % 5)}{n}'"),
    ("BIGINT UNSIGNED", lambda n: str(2**64 - 1 - n)),
    ("TIME", lambda n: f"'{n % 800}:{n % 60:02d}:{n * 7 % 60:02d}'"),
    ("ENUM('a','b','ç')", lambda n: f"'{'abç'[n % 3]}'"),
    ("VARBINARY(6)", lambda n: f"X'{n % 2**24:06x}'"),
    ("YEAR", lambda n: str(1990 + n % 60)),
    ("BIT(9)", lambda n: str(n % 512)),
    ("SMALLINT", lambda n: str(n % 2**16 - 2**15)),
    ("TIMESTAMP NULL", lambda n: f"'2030-06-{n % 28 + 1:02d} 00:00:{n % 60:02d}'"),
)


@dataclass(frozen=True, slots=True)
class WideTable:
    """The table `wide` with a key `id` and nullable columns `c0001`, `c0002`, … of all types.

    Attributes:
        columns: their number, including the key.
    """

    engine: str
    columns: int

    @property
    def create(self) -> str:
        """The statement that creates it."""
        columns = ", ".join(f"c{n:04d} {_KINDS[n % len(_KINDS)][0]}" for n in range(1, self.columns))
        return f"CREATE TABLE wide (id INT NOT NULL PRIMARY KEY, {columns}) ENGINE={self.engine}"

    def changes(self, first: int) -> list[str]:
        """Statements on the keys [first, first + 10): inserts, updates, deletes, key changes, to and from NULL."""
        return [
            *map(self.insert, range(first, first + 5)),
            self.insert_nulls(first + 5),
            self.insert_nulls(first + 6),
            self.update(first, every=3),
            self.update(first + 1, every=self.columns - 1),
            self.update(first + 6, every=1),
            f"UPDATE wide SET {', '.join(f'c{n:04d} = NULL' for n in range(1, self.columns))} WHERE id = {first + 2}",
            f"UPDATE wide SET id = {first + 9} WHERE id = {first + 3}",
            f"DELETE FROM wide WHERE id = {first + 4}",
            self.insert(first + 4),
            f"DELETE FROM wide WHERE id = {first + 5}",
        ]

    def insert(self, key: int) -> str:
        """A row of values."""
        return f"INSERT INTO wide VALUES ({key}, {', '.join(self._value(key, n) for n in range(1, self.columns))})"

    def insert_nulls(self, key: int) -> str:
        """A row with only its key."""
        return f"INSERT INTO wide VALUES ({key}{', NULL' * (self.columns - 1)})"

    def update(self, key: int, every: int) -> str:
        """Every `every`-th column gets another value."""
        changed = range(every, self.columns, every)
        values = (f"c{n:04d} = {self._value(key + 1000, n)}" for n in changed)
        return f"UPDATE wide SET {', '.join(values)} WHERE id = {key}"

    def _value(self, row: int, column: int) -> str:
        return _KINDS[column % len(_KINDS)][1](row * 101 + column * 31)
