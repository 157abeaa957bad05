"""Section `lakehouse`: where the Delta tables are stored."""

from typing import Annotated

from pydantic import Field, model_validator

from dmdelta.config.section import Section, StoragePath

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)]


class LakehouseConfig(Section):
    """A folder of tables (`root`) or a catalog (`catalog`)."""

    root: StoragePath | None = None
    """Folder or URI: tables are `<root>/<bronze>`, `<root>/silver/<schema>/<table>`, `<root>/<metadata>/…`."""

    catalog: Name | None = None
    """Unity Catalog or similar: tables are `<catalog>.<bronze>.events`, `<catalog>.<schema>.<table>`,
    `<catalog>.<metadata>.…`."""

    bronze: Name = "bronze"
    """Folder or schema of the bronze table."""

    metadata: Name = "dm_meta"
    """Folder or schema of the task's own tables, such as its checkpoint."""

    @model_validator(mode="after")
    def _one_place(self) -> "LakehouseConfig":
        if (self.root is None) == (self.catalog is None):
            raise ValueError("lakehouse requires exactly one of root and catalog")
        return self
