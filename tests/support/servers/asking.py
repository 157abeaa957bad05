"""Statements and queries on any running server, each in its own session."""

import secrets
from abc import ABC, abstractmethod
from typing import Any

from pymysql.connections import Connection

LETTERS = "ghjkmnpqrstvwxyz"
"""Of a database's name: it contains no number and no hexadecimal digit that a test expects not to read in an error."""


class Asking(ABC):
    """A server with an administrator's connection."""

    @abstractmethod
    def connect(self, *, database: str | None = None, **settings: Any) -> "Connection[Any]":
        """Open a PyMySQL connection with autocommit."""

    def execute(self, *statements: str, database: str | None = None) -> None:
        """Run statements as the administrator in one session."""
        with self.connect(database=database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def fresh_database(self, prefix: str = "t") -> str:
        """Create a database that no other test uses; its name."""
        name = f"{prefix}_{''.join(secrets.choice(LETTERS) for _ in range(8))}"
        self.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        return name

    def query(
        self, statement: str, database: str | None = None, *, arguments: tuple[Any, ...] | None = None
    ) -> tuple[tuple[Any, ...], ...]:
        """All rows of a SELECT or SHOW, as the administrator; `arguments` replace its `%s`."""
        with self.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute(statement, arguments)
            return tuple(cursor.fetchall())
