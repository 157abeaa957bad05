"""Which rows of bronze a query selects."""

import pytest

from dmdelta.engine.inspect.events import EventQuery, plan_conditions, plan_ranges
from dmdelta.errors import ConfigError
from dmdelta.model.change import Op


@pytest.mark.parametrize(
    ("query", "conditions"),
    [
        (EventQuery(), ["op <> 'schema'"]),
        (EventQuery(op=Op.SCHEMA), ["op = 'schema'"]),
        (EventQuery(table="shop.größe.x"), ["op <> 'schema'", "schema_name = 'shop' AND table_name = 'größe.x'"]),
        (EventQuery(table="a'.b"), ["op <> 'schema'", "schema_name = 'a\\'' AND table_name = 'b'"]),
        (EventQuery(start="binlog.000001:4"), ["op <> 'schema'", f"seq >= {2**40 + 4}"]),
        (
            EventQuery(start="2/binlog.000001:4"),
            ["op <> 'schema'", f"(epoch > 2 OR epoch = 2 AND seq >= {2**40 + 4})"],
        ),
    ],
)
def test_a_query_becomes_conditions(query, conditions):
    """Tables, positions and kinds of change; names are quoted."""
    assert plan_conditions(query) == conditions


@pytest.mark.parametrize("query", [EventQuery(table="orders"), EventQuery(start="here"), EventQuery(start="a:4")])
def test_an_invalid_query_is_rejected(query):
    """The hint shows the expected format."""
    with pytest.raises(ConfigError) as caught:
        plan_conditions(query)
    assert "write --" in (caught.value.hint or "")


def test_the_images_are_read_from_the_ranges_of_the_rows():
    """One range for each source and epoch."""
    assert plan_ranges([("a", -1, 5), ("a", 1, 9), ("a", 1, 7), ("b'", 1, 8)]) == (
        "source_id = 'a' AND epoch = -1 AND seq BETWEEN 5L AND 5L"
        " OR source_id = 'a' AND epoch = 1 AND seq BETWEEN 7L AND 9L"
        " OR source_id = 'b\\'' AND epoch = 1 AND seq BETWEEN 8L AND 8L"
    )
