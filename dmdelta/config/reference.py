"""The page of all keys: `python -m dmdelta.config.reference > docs/spec.md`."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from dmdelta.config.section import Section, format_duration, hyphenated
from dmdelta.config.task import TaskSpec

INTRODUCTION = """# The spec

One YAML file a task. The keys are those of TiDB Data Migration wherever it has one. An unknown key is an error that
names the file, the line and the nearest known key. A value that is exactly `${NAME}` is taken from the environment
variable NAME, one that is exactly `${file:PATH}` from the file there (without its last line's end), one that is exactly
`"{{secrets/<scope>/<key>}}"` from [Databricks](databricks.md). Relative paths start at the spec's folder. A duration is
written `30s`, `1m30s` or `500ms`; a bare number counts seconds.

This page is made by `python -m dmdelta.config.reference`, the schema for editors
(`schemas/pipeline.schema.json`) by `python -m dmdelta.config.schema`.
"""


def spec_reference() -> str:
    """The content of `docs/spec.md`."""
    return INTRODUCTION + "".join(_chapter("", TaskSpec))


def _chapter(place: str, section: type[Section]) -> Iterator[str]:
    summary = " ".join((section.__doc__ or "").split())
    yield f"\n## {f'`{place}`' if place else 'Top level'}\n\n{summary}\n\n"
    yield "| key | default | meaning |\n| --- | --- | --- |\n"
    nested: list[tuple[str, type[Section]]] = []
    for name, field in section.model_fields.items():
        key = hyphenated(name)
        inner, suffix = _nested(field.annotation)
        yield f"| `{key}` | {_default(field)} | {_cell(field.description or '')} |\n"
        if inner is not None:
            nested.append((f"{place}.{key}".removeprefix(".") + suffix, inner))
    for inner_place, inner in nested:
        yield from _chapter(inner_place, inner)


def _nested(annotation: Any) -> tuple[type[Section] | None, str]:
    """The section inside, and how its place is written behind the key: `[]` for a list, `.<name>` for named ones."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, ""
    parts = get_args(annotation)
    found = next((inner for part in parts if (inner := _nested(part)[0]) is not None), None)
    named = ".<name>" if get_origin(annotation) is dict else ""
    return found, "[]" if Ellipsis in parts else named


def _default(field: FieldInfo) -> str:
    value = field.default
    if field.is_required():
        return "required"
    if isinstance(value, timedelta):
        return f"`{format_duration(value)}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple) and value:
        return _cell(", ".join(f"`{item}`" for item in value))
    return f"`{value}`" if isinstance(value, int) or (isinstance(value, str) and value) else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(spec_reference())
