"""Loads a file as a `TaskSpec` or a `SuiteConfig`, or raises one error that lists every problem with its line."""

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import ValidationError

from dmdelta.config.document import Document, Path_, cut, read_document
from dmdelta.config.secrets import References, Secrets, read_secret, variable_of
from dmdelta.config.section import FOLDER, Section, hyphenated
from dmdelta.config.suite import SuiteConfig
from dmdelta.config.task import TaskSpec
from dmdelta.errors import ConfigError

_PLAIN_WORDS = {
    "string_type": "must be text: put it in quotes",
    "missing": "is required",
    "model_type": "must be a mapping of keys",
    "tuple_type": "must be a list",
}
Problem = tuple[int, str]
"""A line and the problem found on it."""
_Section = TypeVar("_Section", bound=Section)


def load_spec(path: str | Path, env: Mapping[str, str] | None = None, secret: Secrets = read_secret) -> TaskSpec:
    """Read, resolve and validate a spec.

    A value that is exactly `${NAME}` is taken from the environment variable NAME, one that is exactly `${file:PATH}`
    from a file, `{{secrets/<scope>/<key>}}` from Databricks' secrets. Relative paths are relative to the spec's folder.

    Args:
        env: the environment; by default that of the process.
        secret: the secrets of a Databricks workspace, by scope and key; by default those of the process.

    Raises:
        ConfigError: every problem with file, line and key; for an unknown key the nearest known one.
    """
    document = read_document(Path(path))
    problems: list[Problem] = []
    references = References(os.environ if env is None else env, secret, Path(path).absolute().parent)
    values = _resolved(document.values, references, document, (), problems)
    spec = _checked(TaskSpec, values, document, problems, "docs/spec.md lists every key")
    return spec.knowing_variables(_variables_of_passwords(document.values))


def load_suite(path: Path) -> tuple[SuiteConfig, Document]:
    """Read and validate a table's suite; the document maps each value to its line.

    Raises:
        ConfigError: every problem with file, line and key.
    """
    document = read_document(path)
    return _checked(SuiteConfig, document.values, document, [], "docs/quality.md describes suites"), document


def _checked(kind: type[_Section], values: Any, document: Document, problems: list[Problem], hint: str) -> _Section:
    """The section built from a document's values.

    Args:
        problems: problems found so far.
    """
    problems += _unknown_keys(kind, document.values, document, ())
    section: _Section | None = None
    try:
        section = kind.model_validate(values, context={FOLDER: Path(document.file).absolute().parent})
    except ValidationError as error:
        problems += _wrong_values(error, document)
    if problems or section is None:
        text = "\n".join(f"{document.file}:{line}: {problem}" for line, problem in sorted(set(problems)))
        raise ConfigError(text, hint=hint)
    return section


def _resolved(value: Any, references: References, document: Document, place: Path_, problems: list[Problem]) -> Any:
    """`value` with every reference resolved; an unresolvable reference is added to `problems`."""
    if isinstance(value, dict):
        return {key: _resolved(inner, references, document, (*place, key), problems) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, references, document, (*place, at), problems) for at, inner in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        return references.value_of(value)
    except ConfigError as error:
        problems.append((document.line_of(place), f"{_shown(place)}: {error.message}"))
        return value


def _variables_of_passwords(value: Any) -> Iterator[str]:
    """The environment variables that hold passwords."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        name = variable_of(inner) if key == "password" and isinstance(inner, str) else None
        if name is not None:
            yield name
        yield from _variables_of_passwords(inner)


def _unknown_keys(section: type[Section], values: Any, document: Document, place: Path_) -> Iterator[Problem]:
    if not isinstance(values, dict):
        return
    known = {hyphenated(name): field for name, field in section.model_fields.items()}
    for key, value in values.items():
        inner = (*place, str(key))
        if key not in known:
            near = difflib.get_close_matches(str(key).replace("_", "-"), known, n=1, cutoff=0.45)
            advice = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
            yield document.line_of(inner), f"unknown key {_shown((*place, cut(key)))!r}: {advice}"
            continue
        nested = _section_in(known[key].annotation)
        if nested is not None:
            for at, item in _sections(known[key].annotation, value):
                yield from _unknown_keys(nested, item, document, (*inner, *at))


def _sections(annotation: Any, value: Any) -> Iterator[tuple[Path_, Any]]:
    """The values that should be sections: `value` itself, its items, or the values of a mapping."""
    if isinstance(value, list):
        yield from (((at,), item) for at, item in enumerate(value))
    elif get_origin(annotation) is dict and isinstance(value, dict):
        yield from (((str(name),), item) for name, item in value.items())
    else:
        yield (), value


def _section_in(annotation: Any) -> type[Section] | None:
    """The section inside `X`, `X | None`, `tuple[X, ...]` or `dict[str, X]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next((found for part in get_args(annotation) if (found := _section_in(part)) is not None), None)


def _wrong_values(error: ValidationError, document: Document) -> Iterator[Problem]:
    for problem in error.errors():
        if problem["type"] == "extra_forbidden":
            continue  # reported by `_unknown_keys`, with a suggestion
        place = problem["loc"]
        words = _PLAIN_WORDS.get(problem["type"], problem["msg"].removeprefix("Value error, "))
        yield document.line_of(place), f"{_shown(place)}: {words}" if place else words


def _shown(place: Path_) -> str:
    """A path in readable form: `sources[0].port`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".")
