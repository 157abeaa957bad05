"""The tables that a statement names, and the refusal of statements that do not only read."""

import pytest

from dmdelta.engine.live.references import read_statement
from dmdelta.errors import ConfigError

PLACES = {"shop.orders": "delta.`/x`", "Shop.Orders": "delta.`/x`", "shop.orders_live": "`v1`", "b.orders": "`v2`"}


def rewritten(text):
    return read_statement(text).with_tables(PLACES.get)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("SELECT * FROM shop.orders", "SELECT * FROM delta.`/x` AS `orders`"),
        ("SELECT * FROM shop.orders;;", "SELECT * FROM delta.`/x` AS `orders`"),
        ("SELECT * FROM Shop.Orders WHERE orders.id = 1", "SELECT * FROM delta.`/x` AS `Orders` WHERE orders.id = 1"),
        ("SELECT o.id FROM shop.orders o", "SELECT o.id FROM delta.`/x` o"),
        ("SELECT o.id FROM `shop`.`orders` AS o", "SELECT o.id FROM delta.`/x` AS o"),
        ("SELECT shop.orders.id FROM shop.orders", "SELECT `orders`.id FROM delta.`/x` AS `orders`"),
        ("FROM shop.orders_live SELECT count(*)", "FROM `v1` AS `orders_live` SELECT count(*)"),
        (
            "SELECT * FROM shop.orders, b.orders WHERE shop.orders.id = b.orders.id",
            "SELECT * FROM delta.`/x` AS `shop.orders`, `v2` AS `b.orders` WHERE `shop.orders`.id = `b.orders`.id",
        ),
        ("SELECT 'FROM shop.orders' -- shop.orders", "SELECT 'FROM shop.orders'"),
        ("SELECT a.b, c:d::string FROM other.orders a", "SELECT a.b, c:d::string FROM other.orders a"),
        ("SELECT * FROM shop.orders VERSION AS OF 3", "SELECT * FROM delta.`/x` VERSION AS OF 3"),
        ("DESCRIBE HISTORY shop.orders", "DESCRIBE HISTORY delta.`/x`"),
        ("explain SELECT * FROM shop.orders", "explain SELECT * FROM delta.`/x` AS `orders`"),
    ],
)
def test_names_are_replaced_by_tables(text, result):
    """Columns can be named as in a schema: by the table's last name, or by both."""
    assert rewritten(text) == result


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DELETE FROM shop.orders", "DELETE is not a query"),
        ("/* SELECT */ insert INTO shop.orders VALUES (1)", "INSERT is not a query"),
        ("OPTIMIZE shop.orders", "OPTIMIZE is not a query"),
        ("SELECT 1; DROP TABLE x", "several statements"),
        ("", "no statement"),
        ("SELECT 'open", "open quotation mark"),
    ],
)
def test_other_statements_are_refused(text, message):
    """A query that contains an INSERT is refused when it is analyzed."""
    with pytest.raises(ConfigError, match=message):
        read_statement(text)
