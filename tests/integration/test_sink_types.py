"""Every type through the sink: what the target holds is what the source holds."""

import pytest

from dmdelta.sink.settings import SinkSettings
from tests.support.charset_families import charset_families
from tests.support.sinking import Sinking, table_differences, target_of
from tests.support.type_families import FAMILIES, matrices
from tests.support.type_matrix import write


@pytest.fixture
def target(request):
    return request.getfixturevalue(request.param)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", ["mysql80_too", pytest.param("mariadb", marks=pytest.mark.long)], indirect=True)
def test_every_value_arrives(mysql80, target, spark, tmp_path):
    """Each value of each type is inserted, becomes the next one, and is found when its row is deleted."""
    database = mysql80.fresh_database("sunk_types")
    # A DECIMAL in a document has no JSON text of its own: it arrives as a DOUBLE.
    known = [family for family in FAMILIES if family.name != "json_made_by_functions"]
    families = [family for family in known if "mysql80" in family.servers] + charset_families(mysql80)
    tables = [table for table in matrices(families) if not table.table.startswith("charsets_")]
    settings = SinkSettings(target_of(target), metadata=f"dm_{database}", workers=4, batch=50, flush_interval=1.0)
    sinking = Sinking(spark, tmp_path, mysql80, [database], settings)
    for statements in (
        [statement for table in tables for statement in (table.create(), *table.inserts())],
        [statement for table in tables for statement in (*table.updates(), *table.deletes())],
    ):
        write(mysql80, database, statements)
        sinking.land()
        sinking.run()
        found = [line for table in tables for line in table_differences(mysql80, target, database, table.table)]
        assert not found, f"{len(found)} differences: {found[:3]}"
