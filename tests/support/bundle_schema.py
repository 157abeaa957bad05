"""A JSON schema of a file of a Databricks asset bundle, like the one that `databricks bundle schema` prints.

Resources have the types of databricks-bundles, which Databricks generates from that schema. It has no types for the
settings around them: those that the bundle uses are defined here.
"""

import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any

from databricks.bundles.core import Variable
from databricks.bundles.jobs import Job, JobRunAs
from databricks.bundles.schemas import Schema
from databricks.bundles.secret_scopes import SecretScope
from databricks.bundles.volumes import Volume

Definition = dict[str, Any]

REFERENCE: Definition = {"type": "string", "pattern": r"^\$\{[^{}]+\}$"}
"""A reference, allowed in place of a value of any type, such as `${var.catalog}`."""
SCALARS: dict[Any, Definition] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    Any: {},
}
RESOURCES = {"jobs": Job, "schemas": Schema, "volumes": Volume, "secret_scopes": SecretScope}


def record(properties: Mapping[str, Definition], *required: str) -> Definition:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def by_name(values: Definition) -> Definition:
    """An object whose keys are names."""
    return {"type": "object", "additionalProperties": values}


def choice(*values: str) -> Definition:
    """A string that is one of these values, or a reference."""
    return unless_reference({"enum": list(values)})


def unless_reference(value: Definition) -> Definition:
    """A value or a reference; as a condition, so that an error is about the value."""
    return {"if": REFERENCE, "else": value}


class Definitions:
    """The definitions of dataclasses, by name: they refer to each other."""

    def __init__(self) -> None:
        self.found: dict[str, Definition] = {}

    def of(self, kind: Any) -> Definition:
        """The definition of a type's values.

        Raises:
            TypeError: a type that is not supported here.
        """
        arguments = [one for one in typing.get_args(kind) if one is not type(None)]
        if kind in SCALARS:
            return SCALARS[kind]
        if typing.get_origin(kind) is typing.Union:
            (value,) = [one for one in arguments if typing.get_origin(one) is not Variable]
            return unless_reference(self.of(value))
        if typing.get_origin(kind) is list:
            return {"type": "array", "items": self.of(arguments[0])}
        if typing.get_origin(kind) is dict:
            return by_name(self.of(arguments[1]))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [one.value for one in kind]}
        if is_dataclass(kind):
            return self._reference(kind)
        raise TypeError(f"no definition of {kind}")

    def _reference(self, kind: Any) -> Definition:
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name not in self.found:
            self.found[name] = {}  # it may refer to itself
            hints = typing.get_type_hints(kind)
            needed = [one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING]
            self.found[name] = record({one.name: self.of(hints[one.name]) for one in fields(kind)}, *needed)
        return {"$ref": f"#/$defs/{name}"}


def bundle_schema() -> Definition:
    """The schema of databricks.yml and of the files that it includes."""
    definitions = Definitions()
    text, flag, texts = SCALARS[str], definitions.of(bool), {"type": "array", "items": SCALARS[str]}
    shared = {
        "artifacts": by_name(
            record({"type": choice("whl", "jar"), "path": text, "build": text, "dynamic_version": flag})
        ),
        "permissions": {"type": "array", "items": _permission(text)},
        "resources": record({name: by_name(definitions.of(kind)) for name, kind in RESOURCES.items()}),
        "run_as": definitions.of(JobRunAs),
        "sync": record({"paths": texts, "include": texts, "exclude": texts}),
        "workspace": record({"host": text, "profile": text, "root_path": text}),
    }
    target = {
        "mode": choice("development", "production"),
        "default": flag,
        "variables": by_name({"type": ["string", "number", "boolean"]}),
    }
    file = {
        "bundle": record({"name": text, "databricks_cli_version": text}, "name"),
        "include": texts,
        "variables": by_name(record({"description": text, "default": {}, "type": choice("complex")})),
        "experimental": record({"skip_name_prefix_for_schema": flag}),
        "targets": by_name(record({**shared, **target})),
    }
    return {**record({**shared, **file}), "$defs": definitions.found}


def _permission(text: Definition) -> Definition:
    names = dict.fromkeys(("user_name", "group_name", "service_principal_name"), text)
    return record({"level": choice("CAN_MANAGE", "CAN_VIEW", "CAN_RUN"), **names}, "level")
