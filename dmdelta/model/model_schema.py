"""The JSON schemas of pydantic models, with the docstrings below their fields as descriptions."""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode


class Untitled(GenerateJsonSchema):
    """Omits pydantic's generated titles, which repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def schema_text(
    model: type[BaseModel],
    base: type[BaseModel],
    mode: JsonSchemaMode = "validation",
    generator: type[GenerateJsonSchema] = Untitled,
) -> str:
    """The content of a file with the schema of a model. `base`: that of all models in it."""
    describe_fields(base)
    schema = model.model_json_schema(mode=mode, schema_generator=generator)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"


def describe_fields(base: type[BaseModel]) -> None:
    """Set the descriptions of the fields of a model and of all that inherit from it.

    pydantic's `use_attribute_docstrings` does so when a class is defined. It parses the source of the class, for which
    every command would wait.
    """
    models = list(_family(base))
    for model in models:
        for name, text in _docstrings(model).items():
            if name in model.model_fields and model.model_fields[name].description is None:
                model.model_fields[name].description = text
    for model in models:  # in the order of their definition: a model contains those before it
        model.model_rebuild(force=True)


def _family(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield base
    for heir in base.__subclasses__():
        yield from _family(heir)


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """By field, own and inherited ones."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if not issubclass(one, BaseModel) or one is BaseModel:
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(definition, ast.ClassDef)
        for field, text in pairwise(definition.body):
            match field, text:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(value))):
                    found[name] = inspect.cleandoc(value)
    return found
