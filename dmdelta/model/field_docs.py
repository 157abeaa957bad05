"""The docstrings below the fields of pydantic models, as their descriptions in schemas and references."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise

from pydantic import BaseModel


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
