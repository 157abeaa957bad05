"""A YAML document that still knows on which line each of its values stands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dmdelta.errors import ConfigError

Path_ = tuple[str | int, ...]
"""The way to a value: keys and list indexes, as pydantic's `loc`."""


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
        ConfigError: no such file, not text, not YAML, a key twice, or not a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(f"no spec at {path}", hint=f"`dmdelta init {path}` writes one to start from") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the spec {path}: {error}", hint="a spec is a UTF-8 text file") from error
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        lines = _check_keys(root, str(path))
        values = loader.construct_document(root) if root is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(
            f"{path}:{line}: {error.problem or error.context}",
            hint="quote values that begin with * & % @ ~ or hold ': '",
        ) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {error}", hint="a spec is a UTF-8 text file in YAML") from error
    finally:
        loader.dispose()
    if not isinstance(values, dict):
        raise ConfigError(f"{path}:1: a spec is a mapping of keys", hint="`dmdelta init` shows how one looks")
    return Document(str(path), values, lines)


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
            raise ConfigError(f"{file}:{line}: {place[-1]!r} is already set in line {lines[place]}", hint="keep one")
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
