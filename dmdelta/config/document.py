"""A YAML document that records the line of each value."""

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
"""The path to a value: keys and list indexes, like pydantic's `loc`."""
MOST_VALUES = 100_000
"""Maximum number of values in a file with all aliases expanded: a few lines of aliases could expand to billions."""
_FOREIGN = re.compile(r"[^\w.-].*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """Plain values and the lines (from 1) of every key and list item."""

    file: str
    values: Mapping[str, Any]
    lines: Mapping[Path_, int]

    def line_of(self, place: Path_) -> int:
        """The line of a value, or of its nearest enclosing value that is in the file."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_document(path: Path) -> Document:
    """Parse a YAML file.

    Raises:
        ConfigError: the file does not exist, is not text or not YAML, repeats a key, is too large, or is not a mapping.
            Neither the message nor the cause contains a value of the file, because it could be a password.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"spec {path} does not exist", hint=f"create one with `dmdelta init {path}`") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the spec {path}: {error}", hint="a spec must be a UTF-8 text file") from error
    loader = _Loader(text)
    try:
        root = loader.get_single_node()
        _check_size(root, str(path))
        lines = _check_keys(root, str(path))
        values = loader.construct_document(root) if root is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        hint = "quote values that start with * & ! % @ ~ or contain ': '"
        raise ConfigError(f"{path}:{line}: {_problem(error)}", hint=hint) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {error}", hint="a spec must be a UTF-8 text file in YAML") from None
    except RecursionError:
        raise ConfigError(
            f"{path}: too many nested brackets", hint="reduce the nesting: no section of a spec is nested this deeply"
        ) from None
    finally:
        loader.dispose()
    if not isinstance(values, dict):
        raise ConfigError(f"{path}:1: a spec must be a mapping of keys", hint="`dmdelta init` writes an example")
    return Document(str(path), values, lines)


class _Loader(yaml.SafeLoader):
    """Constructs plain values only, and reports the position of any value that it cannot construct."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's signature
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError, AttributeError, TypeError, OverflowError):
            raise ConstructorError(None, None, "invalid value for its type", node.start_mark) from None


def _problem(error: yaml.MarkedYAMLError) -> str:
    """The parser's error without the file's content."""
    if isinstance(error, ComposerError) and "document" not in (error.context or ""):
        return "undefined alias (*) or duplicate anchor (&)"
    if isinstance(error, ConstructorError) and "tag" in (error.problem or ""):
        return "unsupported tag (!): a spec contains plain values only"
    return error.problem or error.context or "not YAML"


def cut(key: object) -> str:
    """A key shortened for display: of `password:secret` (missing space after the colon), only `password`."""
    return _FOREIGN.sub("…", str(key))


def _check_size(root: yaml.Node | None, file: str) -> None:
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        """Number of values with aliases expanded; over the limit if the node contains itself."""
        if id(node) not in sizes:
            sizes[id(node)] = MOST_VALUES
            pairs = node.value if isinstance(node, yaml.CollectionNode) else ()
            inner = (one for pair in pairs for one in (pair if isinstance(pair, tuple) else (pair,)))
            sizes[id(node)] = 1 + sum(map(size, inner))
        return sizes[id(node)]

    if root is not None and size(root) > MOST_VALUES:
        raise ConfigError(
            f"{file}: its aliases (*) expand to more than {MOST_VALUES:,} values", hint="write the values out"
        )


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
            raise ConfigError(
                f"{file}:{line}: {key!r} is already set in line {lines[place]}", hint="remove one of them"
            )
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
