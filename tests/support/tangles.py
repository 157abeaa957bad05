"""A seeded workload that is hard to execute in parallel: key changes, unique values that move between rows, deleted and
reinserted rows, tables without a key, transactions over several tables, statements in between.
"""

import random
from typing import Any

import pymysql

TABLES = {
    "plain": "CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(40), n INT)",
    "accounts": """CREATE TABLE accounts (id INT PRIMARY KEY, login VARCHAR(20) NOT NULL UNIQUE, mail VARCHAR(40) UNIQUE,
        score DECIMAL(20,4), seen DATETIME(6))""",
    "names": "CREATE TABLE names (name VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)",
    "pairs": "CREATE TABLE pairs (a INT, b CHAR(5), f FLOAT, d DOUBLE, t TIMESTAMP(3) NULL, PRIMARY KEY (a, b))",
    "bag": "CREATE TABLE bag (a INT, b VARCHAR(10), f FLOAT)",
}
_LOGINS = [f"user{number}" for number in range(30)]


class Tangler:
    """Writes through one cursor of a connection without autocommit."""

    def __init__(self, connection: Any, seed: int, *, statements: bool = True, defaults: bool = False) -> None:
        """
        Args:
            statements: some transactions change the tables' structures.
            defaults: rows name the columns added later as `DEFAULT`: a MINIMAL image lacks columns without a value.
        """
        self._connection = connection
        self._cursor = connection.cursor()
        self._random = random.Random(seed)
        self._statements = statements
        self._defaults = defaults
        self._added = 0

    def work(self, transactions: int) -> None:
        """Run this many transactions; statements that the server refuses are skipped, some transactions roll back."""
        for number in range(transactions):
            if self._statements and number % 25 == 24:
                self._change_structure()
                continue
            for _ in range(self._random.choice((1, 1, 2, 5, 12))):
                self._attempt()
            if self._random.random() < 0.05:
                self._connection.rollback()
            self._connection.commit()

    def _attempt(self) -> None:
        step = self._random.choice(
            (self._plain, self._plain, self._account, self._swap, self._name, self._pair, self._bag, self._bulk)
        )
        try:
            step()
        except pymysql.err.MySQLError as error:
            if error.args[0] not in (1062, 1054):
                raise

    def _do(self, sql: str, *values: Any) -> None:
        self._cursor.execute(sql, values)

    def _plain(self) -> None:
        key, roll = self._random.randrange(60), self._random.random()
        if roll < 0.4:
            added = [f"c{number}" for number in self._existing()] if self._defaults else []
            columns, values = ", ".join(["id, v, n", *added]), ", ".join(["%s, %s, %s", *("DEFAULT" for _ in added)])
            self._do(f"REPLACE INTO plain ({columns}) VALUES ({values})", key, f"v{self._random.random()}'\\", key)
        elif roll < 0.7:
            self._do("UPDATE plain SET n = n + 1, v = concat(left(v, 20), 'x') WHERE id = %s", key)
        elif roll < 0.85:
            self._do("DELETE FROM plain WHERE id = %s", key)
        else:
            self._do("UPDATE plain SET id = %s WHERE id = %s", self._random.randrange(60), key)

    def _account(self) -> None:
        key, roll = self._random.randrange(25), self._random.random()
        login = self._random.choice(_LOGINS)
        mail = None if self._random.random() < 0.3 else f"{self._random.choice(_LOGINS)}@x"
        if roll < 0.4:
            self._do("INSERT INTO accounts (id, login, mail, score) VALUES (%s, %s, %s, %s)", key, login, mail, key / 7)
        elif roll < 0.7:
            self._do("UPDATE accounts SET login = %s, mail = %s WHERE id = %s", login, mail, key)
        elif roll < 0.8:
            self._do("UPDATE accounts SET score = score * 1.01, seen = NOW(6) WHERE id = %s", key)
        elif roll < 0.9:
            self._do("UPDATE accounts SET id = %s WHERE id = %s", self._random.randrange(25), key)
        else:
            self._do("DELETE FROM accounts WHERE id = %s", key)

    def _swap(self) -> None:
        one, other = self._random.sample(range(25), 2)
        self._cursor.execute("SELECT id, login FROM accounts WHERE id IN (%s, %s)", (one, other))
        found = dict(self._cursor.fetchall())
        if len(found) == 2:
            self._do("UPDATE accounts SET login = 'between' WHERE id = %s", one)
            self._do("UPDATE accounts SET login = %s WHERE id = %s", found[one], other)
            self._do("UPDATE accounts SET login = %s WHERE id = %s", found[other], one)

    def _name(self) -> None:
        name = self._random.choice(("ada", "ADA", "Ada ", "bob", "BOB", "eve", "vow", "wow"))
        if self._random.random() < 0.5:
            self._do("REPLACE INTO names VALUES (%s, %s)", name, self._random.randrange(100))
        else:
            self._do("UPDATE names SET name = upper(name), n = n + 1 WHERE name = %s", name)

    def _pair(self) -> None:
        a, b = self._random.randrange(6), self._random.choice("abc")
        if self._random.random() < 0.6:
            f = self._random.random()
            self._do("REPLACE INTO pairs VALUES (%s, %s, %s, %s, NOW(3))", a, b, f, f)
        else:
            self._do("DELETE FROM pairs WHERE a = %s AND b = %s", a, b)

    def _bag(self) -> None:
        a, b = self._random.randrange(4), self._random.choice(("x", "X", "x ", None))
        roll = self._random.random()
        if roll < 0.6:
            self._do("INSERT INTO bag (a, b, f) VALUES (%s, %s, %s)", a, b, self._random.choice((0.1, 1.5, None)))
        elif roll < 0.8:
            self._do("DELETE FROM bag WHERE a = %s LIMIT 1", a)
        else:
            self._do("UPDATE bag SET b = %s WHERE a = %s", b, a)

    def _bulk(self) -> None:
        self._do("UPDATE plain SET id = id + 60 WHERE id < 60 AND id > %s", 55)
        self._do("DELETE FROM plain WHERE id >= 60")

    def _existing(self) -> list[int]:
        """The numbers of the columns that were added and are still there."""
        return [number for number in range(1, self._added + 1) if number % 2 == 0 or number == self._added]

    def _change_structure(self) -> None:
        self._added += 1
        self._do(f"ALTER TABLE plain ADD COLUMN c{self._added} INT DEFAULT {self._added}, ADD INDEX (c{self._added})")
        if self._added % 2 == 0:
            self._do(f"ALTER TABLE plain DROP COLUMN c{self._added - 1}")
        if self._added % 3 == 0:
            self._do("TRUNCATE TABLE bag")
