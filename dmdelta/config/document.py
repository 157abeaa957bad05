"""A YAML document that still knows on which line each of its values stands."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from dmdelta.errors import ConfigError

Path_ = tuple[str | int, ...]
"""The way to a value: keys and list indexes, as pydantic's `loc`."""
MOST_VALUES = 100_000
"""So many values a file may have with its aliases written out: a few lines of them could mean billions."""
_FOREIGN = re.compile(r"[^\w.-].*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values and the lines (from 1) of every key and list item."""

    file: str
    values: Mapping[str, Any]
    lines: Mapping[Path_, int]

    def line_of(self, place: Path_) -> int:
        """The line of a value, or of the nearest thing around it that is in the file."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_document(path: Path) -> Document:
    """Parse a YAML file.

    Raises:
        ConfigError: no such file, not text, not YAML, a key twice, too much of it, or not a mapping. No value of the
            file is in it, nor its cause: that could be a password.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"no spec at {path}", hint=f"`dmdelta init {path}` writes one to start from") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the spec {path}: {error}", hint="a spec is a UTF-8 text file") from error
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        _check_size(root, str(path))
        lines = _check_keys(root, str(path))
        values = loader.construct_document(root) if root is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        hint = "quote values that begin with * & ! % @ ~ or hold ': '"
        raise ConfigError(f"{path}:{line}: {_problem(error)}", hint=hint) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {error}", hint="a spec is a UTF-8 text file in YAML") from None
    except RecursionError:
        raise ConfigError(f"{path}: brackets within brackets without end", hint="a spec has no such depth") from None
    finally:
        loader.dispose()
    if not isinstance(values, dict):
        raise ConfigError(f"{path}:1: a spec is a mapping of keys", hint="`dmdelta init` shows how one looks")
    return Document(str(path), values, lines)


class _Loader(yaml.SafeLoader):
    """Makes plain values only, and of a value that is none an error with its place."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - as PyYAML calls it
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
            raise ConstructorError(None, None, "this is no value of its form", node.start_mark) from None


def _problem(error: yaml.MarkedYAMLError) -> str:
    """In words without what stands there."""
    if isinstance(error, ComposerError) and "document" not in (error.context or ""):
        return "an alias (*) without its anchor, or an anchor (&) twice"
    if isinstance(error, ConstructorError) and "tag" in (error.problem or ""):
        return "a tag (!): a spec has plain values only"
    return error.problem or error.context or "not YAML"


def cut(key: object) -> str:
    """A key as it may be shown: of `password:secret`, which lacks a blank, its beginning."""
    return _FOREIGN.sub("…", str(key))


def _check_size(root: yaml.Node | None, file: str) -> None:
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        """How many values it is, with its aliases written out; more than are allowed if it holds itself."""
        if id(node) not in sizes:
            sizes[id(node)] = MOST_VALUES + 1
            pairs = node.value if isinstance(node, yaml.CollectionNode) else ()
            inner = (one for pair in pairs for one in (pair if isinstance(pair, tuple) else (pair,)))
            sizes[id(node)] = 1 + sum(map(size, inner))
        return sizes[id(node)]

    if root is not None and size(root) > MOST_VALUES:
        raise ConfigError(f"{file}: its aliases (*) stand for more than {MOST_VALUES:,} values", hint="write them out")


def _check_keys(root: yaml.Node | None, file: str) -> dict[Path_, int]:
    """The line of every value.

    Raises:
        ConfigError: a key occurs twice in one mapping (YAML would silently keep the last).
    """
    lines: dict[Path_, int] = {}
    if root is None:
        return lines
    for place, line in _walk(root, ()):
        if place in lines:
            key = cut(place[-1])
            raise ConfigError(f"{file}:{line}: {key!r} is already set in line {lines[place]}", hint="keep one")
        lines[place] = line
    return lines


def _walk(node: yaml.Node, place: Path_) -> Iterator[tuple[Path_, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            inner = (*place, str(key.value))
            yield inner, key.start_mark.line + 1
            yield from _walk(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            inner = (*place, index)
            yield inner, value.start_mark.line + 1
            yield from _walk(value, inner)
