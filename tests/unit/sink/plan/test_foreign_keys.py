"""What the target's foreign keys mean for the order of changes."""

from dmdelta.sink.plan.foreign_keys import ALONE, Parent, Reference, read_foreign_keys

RULES = [
    ("d", "child", "d", "parent", 0),
    ("d", "grandchild", "d", "child", 1),
    ("d", "grandchild", "e", "Other", 1),
    ("d", "a", "d", "b", 1),
]
"""Child and parent, and whether a foreign key only restricts."""
REFERENCED = [
    ("d", "child", "f", "d", "parent", "px", "x"),
    ("d", "child", "f", "d", "parent", "py", "y"),
    ("d", "grandchild", "f", "d", "child", "one", "id"),
    ("d", "grandchild", "g", "d", "child", "two", "id"),
    ("d", "Grandchild", "h", "e", "other", "other", "id"),
    ("d", "a", "f", "d", "b", "b", "id"),
]
"""Child and the foreign key's name, and each of its columns with the one that it references."""


def read():
    return read_foreign_keys(lambda sql: RULES if "REFERENTIAL_CONSTRAINTS" in sql else REFERENCED)


def test_tables_that_foreign_keys_connect():
    """They are one group, whose tables have all one order if one of them changes by a cascade."""
    found = read()
    of_child = {found.of(("d", name)) for name in ("child", "parent", "grandchild")} | {found.of(("e", "Other"))}
    assert {(one.group, one.cascades) for one in of_child} == {("foreign keys of d.child", True)}
    assert {(found.of(("d", name)).group, found.of(("d", name)).cascades) for name in "ab"} == {
        ("foreign keys of d.a", False)
    }
    assert found.of(("d", "alone")) == ALONE


def test_columns_that_foreign_keys_reference():
    """Each list once, with the names that the foreign keys have, whatever the case of the table's name."""
    found = read()
    assert found.of(("d", "parent")).referenced == (Reference("d", "parent", ("x", "y")),)
    assert found.of(("d", "child")).referenced == (Reference("d", "child", ("id",)),)
    assert found.of(("e", "Other")).referenced == (Reference("e", "other", ("id",)),)
    assert found.of(("d", "grandchild")).referenced == ()


def test_foreign_keys_of_a_table():
    """Each with its columns and what they reference."""
    found = read()
    assert found.of(("d", "child")).parents == (Parent(("px", "py"), Reference("d", "parent", ("x", "y"))),)
    assert found.of(("d", "grandchild")).parents == (
        Parent(("one",), Reference("d", "child", ("id",))),
        Parent(("two",), Reference("d", "child", ("id",))),
        Parent(("other",), Reference("e", "other", ("id",))),
    )
    assert found.of(("d", "parent")).parents == ()
