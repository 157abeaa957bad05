"""Docstrings below the fields of pydantic models."""

from pydantic import BaseModel, Field

from dmdelta.model.model_schema import describe_fields


class Inner(BaseModel):
    size: int = 0
    """Bytes."""


class Base(BaseModel):
    name: str
    """A name,

    in two paragraphs.
    """
    plain: int = 0
    shown: int = Field(0, description="explicit")
    """Not used."""


class Heir(Base):
    inner: Inner = Inner()
    """The inner one."""
    name: str
    """Another name."""


def test_docstrings_become_descriptions():
    """Of own, inherited and nested fields, also after a schema has been made without them."""
    assert "description" not in Heir.model_json_schema()["properties"]["inner"]
    describe_fields(Inner)
    describe_fields(Base)
    schema = Heir.model_json_schema()
    described = {name: field.get("description") for name, field in schema["properties"].items()}
    assert described == {"name": "Another name.", "plain": None, "shown": "explicit", "inner": "The inner one."}
    assert schema["$defs"]["Inner"]["properties"]["size"]["description"] == "Bytes."
    assert Base.model_json_schema()["properties"]["name"]["description"] == "A name,\n\nin two paragraphs."
