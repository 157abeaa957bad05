"""Constructor calls are readable: more than six arguments are passed by name."""

import ast
from pathlib import Path

import dmdelta

MOST = 6


def classes():
    """The names of the package's own classes."""
    trees = [ast.parse(path.read_text()) for path in Path(dmdelta.__file__).parent.rglob("*.py")]
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def long_calls(tree, names):
    """Line and class of each call of a constructor with too many positional arguments; `*pair` counts as two."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            count = sum(2 if isinstance(argument, ast.Starred) else 1 for argument in node.args)
            if count > MOST:
                yield node.lineno, node.func.id


def test_no_constructor_takes_more_than_six_positional_arguments():
    names, package = classes(), Path(dmdelta.__file__).parent
    found = [
        f"{path.relative_to(package)}:{line} {name}"
        for path in sorted(package.rglob("*.py"))
        for line, name in long_calls(ast.parse(path.read_text()), names)
    ]
    assert found == []


def test_a_long_call_is_found():
    """The check itself: seven arguments are too many, and so are six if one is a pair."""
    assert list(long_calls(ast.parse("Point(1, 2, 3, 4, 5, 6, 7)"), {"Point"})) == [(1, "Point")]
    assert list(long_calls(ast.parse("Point(1, 2, 3, 4, 5, *pair)"), {"Point"})) == [(1, "Point")]
    assert list(long_calls(ast.parse("Point(1, 2, 3, 4, 5, 6, x=7)"), {"Point"})) == []
