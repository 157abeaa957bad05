"""Names of the indexes and constraints that an ALTER TABLE adds."""

from dmdelta.ddl.parse.actions import is_index, key_columns
from dmdelta.ddl.tokens import Cursor, Token, tokenize
from dmdelta.model.mysql_sql import quoted_name

_NO_NAME = ("(", "USING")
"""What follows where the name of an index is left out."""


def adds_index(action: list[Token]) -> bool:
    """Whether an action adds an index or a constraint."""
    return action[0].keyword == "ADD" and len(action) > 1 and is_index(action[1:])


def indexed_columns(action: list[Token]) -> tuple[str, ...]:
    """The columns, in lower case, of the index that an action adds; empty if it adds none."""
    return tuple(map(str.lower, key_columns(Cursor(action)))) if adds_index(action) else ()


def named_index(action: str, names: set[str]) -> str:
    """An action with the name that the server would give an index, so that it refuses a second execution.

    Args:
        names: of indexes that the statement has added before; the index is added.
    """
    tokens = tokenize(action)
    place, columns = _place_of_name(tokens), key_columns(Cursor(tokens))
    if place is None:
        return action
    if place.keyword not in _NO_NAME or not columns or is_nameless(tokens):
        names.add(place.text.lower())
        return action
    numbered = (columns[0], *(f"{columns[0]}_{number}" for number in range(2, len(names) + 3)))
    name = next(name for name in numbered if name.lower() not in names)
    names.add(name.lower())
    return f"{action[: place.begin]}{quoted_name(name)} {action[place.begin :]}"


def is_nameless(action: list[Token]) -> bool:
    """Whether the server gives what an action adds another name each time, so that it does not refuse a second
    execution: a foreign key, a CHECK or an index on an expression, without a name.
    """
    place = _place_of_name(action)
    if place is not None:
        return place.keyword in _NO_NAME and "(" in key_columns(Cursor(action))
    cursor = Cursor(action)
    if not cursor.accept("ADD"):
        return False
    cursor.accept("CONSTRAINT")
    # MySQL 8.0 ignores a name after FOREIGN KEY.
    return cursor.accept("CHECK") or (cursor.accept("FOREIGN", "KEY") and not cursor.accept("IF", "NOT", "EXISTS"))


def _place_of_name(action: list[Token]) -> Token | None:
    """The name of an index that is added, or what follows if it has none; None for any other action."""
    cursor = Cursor(action)
    if not cursor.accept("ADD") or (cursor.accept("CONSTRAINT") and cursor.peek() != "UNIQUE"):
        return None
    kind = cursor.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
    if not cursor.accept_any("INDEX", "KEY") and not kind:
        return None
    cursor.accept("IF", "NOT", "EXISTS")
    return cursor.take()
