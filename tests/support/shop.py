"""A small shop: its tables, and a seeded clerk that writes one transaction per step.

Each lane (a clerk's number) has its own key range, so clerks in parallel threads never wait for each other's rows,
and the same seed and lane produce the same statements.
"""

import json
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from pymysql.cursors import Cursor

LANE_KEYS = 10_000_000
_NAMES = (
    "Ada Lovelace",
    "王小明",
    "José Ñandú",
    "Zoë Müller",
    "Łukasz Wójcik",
    "😀 Smile",
    "O'Brien",
    "Николай",
    "محمد",
    "いちご",
)
_CITIES = ("Zürich", "台北", "São Paulo", "Malmö", "Reykjavík")
_OPENED = datetime(2026, 1, 5, 8, 0, 0)  # noqa: DTZ001 - MySQL's DATETIME has no zone

TABLES: dict[str, str] = {
    "customers": """CREATE TABLE customers (
        id INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(60) NOT NULL, email VARCHAR(120) CHARACTER SET latin1, tier ENUM('basic','silver','gold') NOT NULL,
        interests SET('books','music','games','garden') NOT NULL, balance DECIMAL(12,2) NOT NULL, joined_at DATETIME(6) NOT NULL, notes TEXT)""",
    "products": """CREATE TABLE products (
        sku CHAR(12) NOT NULL PRIMARY KEY, title VARCHAR(120) NOT NULL, price DECIMAL(10,2) NOT NULL, weight_kg FLOAT, rating DOUBLE,
        attributes JSON, thumbnail VARBINARY(16), active TINYINT(1) NOT NULL)""",
    "orders": """CREATE TABLE orders (
        id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer_id INT UNSIGNED NOT NULL, status ENUM('new','paid','shipped','cancelled') NOT NULL,
        total DECIMAL(14,4) NOT NULL, ordered_at DATETIME(6) NOT NULL, due_on DATE, updated_at TIMESTAMP(3) NULL)""",
    "order_items": """CREATE TABLE order_items (
        order_id BIGINT UNSIGNED NOT NULL, line SMALLINT NOT NULL, sku CHAR(12) NOT NULL, quantity INT NOT NULL, price DECIMAL(10,2) NOT NULL,
        PRIMARY KEY (order_id, line))""",
    "events": """CREATE TABLE events (
        id BIGINT NOT NULL PRIMARY KEY, kind VARCHAR(20) NOT NULL, payload JSON, occurred_at DATETIME(6) NOT NULL, took TIME(3))""",
    "inventory": """CREATE TABLE inventory (
        warehouse SMALLINT UNSIGNED NOT NULL, sku CHAR(12) NOT NULL, quantity INT NOT NULL, flags BIT(8) NOT NULL, counted YEAR,
        PRIMARY KEY (warehouse, sku))""",
}
KEYLESS = {
    "page_views": "CREATE TABLE page_views (path VARCHAR(40) NOT NULL, visitor INT, seen_at DATETIME(3) NOT NULL)"
}


class Clerk:
    """Writes to one lane of the shop through one cursor; the connection must not be in autocommit mode.

    Attributes:
        transactions, rows: committed so far; `rows` counts row changes.
    """

    def __init__(self, cursor: Cursor, seed: int, lane: int = 0, *, keyless: bool = False) -> None:
        self.transactions = 0
        self.rows = 0
        self._cursor = cursor
        self._random = random.Random(f"{seed}/{lane}")
        self._lane = lane
        self._next = lane * LANE_KEYS
        self._customers: list[int] = []
        self._skus: list[str] = []
        self._orders: dict[int, int] = {}
        self._events: list[int] = []
        self._steps: dict[Callable[[], None], int] = {
            self.place_order: 10,
            self.advance_order: 6,
            self.record_events: 6,
            self.join: 3,
            self.add_product: 3,
            self.restock: 3,
            self.edit_event: 3,
            self.cancel_order: 2,
            self.renumber: 2,
            self.replace_event: 1,
            self.leave: 1,
        }
        if keyless:
            self._steps[self.view_pages] = 3

    def go_on(self, cursor: Cursor) -> None:
        """Use another connection: the previous one was lost between transactions."""
        self._cursor = cursor

    def open_shop(self, customers: int = 5, products: int = 8) -> None:
        """Write the first rows, which the other steps build on."""
        for _ in range(customers):
            self.join()
        for _ in range(products):
            self.add_product()

    def step(self) -> None:
        """One random transaction."""
        (chosen,) = self._random.choices(list(self._steps), weights=list(self._steps.values()))
        chosen()

    def join(self) -> None:
        """A customer joins."""
        key, pick = self._key(), self._random
        interests = ",".join(name for name in ("books", "music", "games", "garden") if pick.random() < 0.4)
        tier = pick.choice(("basic", "silver", "gold"))
        values = (
            key,
            pick.choice(_NAMES),
            f"c{key}@exämple.org",
            tier,
            interests,
            self._money(),
            self._time(),
            self._maybe("n\tö" * 9),
        )
        self._run("INSERT INTO customers VALUES (%s,%s,%s,%s,%s,%s,%s,%s)", values)
        self._customers.append(key)
        self._commit()

    def add_product(self) -> None:
        """A product is listed and stocked in two warehouses."""
        key, pick = self._key(), self._random
        sku = f"S{key:09d}"
        attributes = {
            "colour": pick.choice(("red", "grün", "青")),
            "sizes": [pick.randrange(50) for _ in range(3)],
            "eco": pick.random() < 0.5,
        }
        shown = (pick.randbytes(8), pick.random() < 0.9)
        numbers = (self._money(), pick.random() * 10, pick.random() * 5)
        self._run(
            "INSERT INTO products VALUES (%s,%s,%s,%s,%s,%s,%s,%s)",
            (sku, f"Thing {key}", *numbers, json.dumps(attributes), *shown),
        )
        stock = [(house, sku, pick.randrange(500), pick.randrange(256), pick.randint(1901, 2155)) for house in (1, 2)]
        self._run_many("INSERT INTO inventory VALUES (%s,%s,%s,%s,%s)", stock)
        self._skus.append(sku)
        self._commit()

    def place_order(self) -> None:
        """An order with its items, and the stock goes down: three tables in one transaction."""
        key, pick = self._key(), self._random
        lines = [
            (key, line, pick.choice(self._skus), pick.randint(1, 9), self._money())
            for line in range(1, pick.randint(2, 6))
        ]
        total = sum((price * quantity for *_, quantity, price in lines), Decimal(0))
        row = (
            key,
            pick.choice(self._customers),
            "new",
            total,
            self._time(),
            self._maybe(self._time().date()),
            self._maybe(self._time()),
        )
        self._run("INSERT INTO orders VALUES (%s,%s,%s,%s,%s,%s,%s)", row)
        self._run_many("INSERT INTO order_items VALUES (%s,%s,%s,%s,%s)", lines)
        self._run("UPDATE inventory SET quantity = quantity - %s WHERE sku = %s", (lines[0][3], lines[0][2]))
        self._orders[key] = len(lines)
        self._commit()

    def advance_order(self) -> None:
        """An order is paid and shipped in one transaction: two updates of one row."""
        if self._orders:
            key = self._random.choice(list(self._orders))
            self._run("UPDATE orders SET status = 'paid', updated_at = %s WHERE id = %s", (self._time(), key))
            self._run("UPDATE orders SET status = 'shipped' WHERE id = %s", (key,))
            self._run(
                "UPDATE customers SET balance = balance - 1.25 WHERE id = %s", (self._random.choice(self._customers),)
            )
        self._commit()

    def cancel_order(self) -> None:
        """An order and its items are deleted."""
        if self._orders:
            key = self._random.choice(list(self._orders))
            del self._orders[key]
            self._run("DELETE FROM order_items WHERE order_id = %s", (key,))
            self._run("DELETE FROM orders WHERE id = %s", (key,))
        self._commit()

    def renumber(self) -> None:
        """Key changes: an order gets a new id with its items."""
        if self._orders:
            key, fresh = self._random.choice(list(self._orders)), self._key()
            self._orders[fresh] = self._orders.pop(key)
            self._run("UPDATE orders SET id = %s WHERE id = %s", (fresh, key))
            self._run("UPDATE order_items SET order_id = %s WHERE order_id = %s", (fresh, key))
        self._commit()

    def record_events(self) -> None:
        """Several rows in one statement, with nested JSON documents."""
        pick = self._random
        rows = []
        for _ in range(pick.randint(1, 6)):
            key = self._key()
            payload = {
                "id": key,
                "tags": ["é", None, True, 1.5, -7],
                "at": {"city": pick.choice(_CITIES), "n": pick.randrange(2**40)},
            }
            took = timedelta(milliseconds=pick.randrange(-10_000_000, 10_000_000))
            rows.append((key, pick.choice(("click", "view")), self._maybe(json.dumps(payload)), self._time(), took))
            self._events.append(key)
        self._run_many("INSERT INTO events VALUES (%s,%s,%s,%s,%s)", rows)
        self._commit()

    def edit_event(self) -> None:
        """A value inside a document changes."""
        if self._events:
            key = self._random.choice(self._events)
            self._run(
                "UPDATE events SET payload = JSON_SET(payload, '$.at.city', %s, '$.edits', 1) WHERE id = %s",
                (self._random.choice(_CITIES), key),
            )
        self._commit()

    def replace_event(self) -> None:
        """Delete and insert of the same key in one transaction."""
        if self._events:
            key = self._random.choice(self._events)
            self._run("DELETE FROM events WHERE id = %s", (key,))
            self._run("INSERT INTO events VALUES (%s,'again',NULL,%s,NULL)", (key, self._time()))
        self._commit()

    def restock(self) -> None:
        """Many rows change in one statement."""
        for sku in self._random.sample(self._skus, min(3, len(self._skus))):
            self._run("UPDATE inventory SET quantity = quantity + 100, flags = flags + 1 & 255 WHERE sku = %s", (sku,))
        self._commit()

    def leave(self) -> None:
        """A customer is updated and deleted in one transaction."""
        if len(self._customers) > 3:
            gone = self._customers.pop(self._random.randrange(len(self._customers)))
            self._run("UPDATE customers SET notes = 'leaving', tier = 'basic' WHERE id = %s", (gone,))
            self._run("DELETE FROM customers WHERE id = %s", (gone,))
        self._commit()

    def view_pages(self) -> None:
        """Equal rows in a table without a key; sometimes one of several equal rows is updated or deleted."""
        pick = self._random
        view = (f"/l{self._lane}/p{pick.randrange(4)}", self._maybe(pick.randrange(3)), _OPENED)
        self._run_many("INSERT INTO page_views VALUES (%s,%s,%s)", [view, view])
        if pick.random() < 0.3:
            self._run("UPDATE page_views SET visitor = 99 WHERE path = %s LIMIT 1", (view[0],))
        if pick.random() < 0.3:
            self._run("DELETE FROM page_views WHERE path = %s LIMIT 1", (view[0],))
        self._commit()

    def _run(self, statement: str, values: tuple[Any, ...]) -> None:
        self.rows += self._cursor.execute(statement, values)

    def _run_many(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        self.rows += self._cursor.executemany(statement, rows) or 0

    def _commit(self) -> None:
        self._cursor.connection.commit()
        self.transactions += 1

    def _key(self) -> int:
        self._next += 1
        return self._next

    def _money(self) -> Decimal:
        return Decimal(self._random.randrange(100, 99_999)) / 100

    def _time(self) -> datetime:
        return _OPENED + timedelta(microseconds=self._random.randrange(10**14))

    def _maybe(self, value: Any) -> Any:
        return None if self._random.random() < 0.2 else value
