"""One run of the type matrix on one server: write, land, apply, compare; then change, land, apply, compare."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.catalog import Observer
from tests.support.charset_families import CHARSETS, charset_families
from tests.support.diff import Difference
from tests.support.pipeline import Pipeline
from tests.support.recording import record
from tests.support.replay import Tables, decode, replay_differences
from tests.support.servers import Server
from tests.support.snapshot import snapshot_differences
from tests.support.type_families import FAMILIES, SQL_MODE, TIME_ZONE, Matrix, family_of, matrices


@dataclass
class MatrixRun:
    """The results of a run.

    Attributes:
        inserted, changed: silver against the source after the inserts, after the updates and deletes.
        decoded: the replayed codec output against the source at the end; odd dates as the text in bronze.
        read: the rows as a snapshot reads them against the replayed codec output at the end.
        faults: before images that differ from the row before the change.
    """

    inserted: list[Difference]
    changed: list[Difference]
    decoded: list[Difference]
    read: list[Difference]
    faults: list[str]
    columns: dict[str, set[str]] = field(default_factory=dict)

    def of_family(self, found: list[Difference], family: str) -> list[str]:
        """The differences of a family: in its columns, and in whole rows and tables that contain them."""
        assert self.columns[family], f"{family} was not written"
        return [str(one) for one in found if one.column is None or family_of(one.column) == family]


def silver_families(server: str) -> list[str]:
    """The families of a server that go to silver, known before it runs."""
    charsets = [f"charset_{name}" for name in CHARSETS[server]] if server == "mysql80" else []
    return [family.name for family in FAMILIES if server in family.servers] + charsets


def family_names(server: str) -> list[str]:
    """The families of a server, known before it runs."""
    return [family.name for family in FAMILIES if server in family.servers] + [
        f"charset_{name}" for name in CHARSETS[server]
    ]


def run_type_matrix(server: Server, pipeline: Pipeline, folder: Path) -> MatrixRun:
    """All families of a server, through codec, bronze and silver; most character sets through the codec alone."""
    database, apart = server.fresh_database("types"), server.fresh_database("charsets")
    families = [family for family in FAMILIES if server.name in family.servers] + charset_families(server)
    landed = [table for table in matrices(families) if _in_silver(server, table)]
    decoded = [table for table in matrices(families) if not _in_silver(server, table)]
    archive = folder / server.name
    observer = Observer(server, database), Observer(server, apart)

    def bring() -> list[Difference]:
        record(server, archive)
        pipeline.catch_up(archive, server.name, [database], server.flavor, observer[0].structures)
        return [found for table in landed for found in pipeline.differences(server, database, table.table)]

    write(server, database, [statement for table in landed for statement in (table.create(), *table.inserts())])
    write(server, apart, [statement for table in decoded for statement in (table.create(), *table.inserts())])
    for one in observer:
        one.look()
    inserted = bring()
    write(server, database, [statement for table in landed for statement in (*table.updates(), *table.deletes())])
    write(server, apart, [statement for table in decoded for statement in (*table.updates(), *table.deletes())])
    changed = bring()
    state = Tables(lambda _: ("id",))
    for change in decode(
        archive, lambda schema, _: schema in (database, apart), {**observer[0].by_name(), **observer[1].by_name()}
    ):
        state.apply(change)
    found = [line for table in landed for line in replay_differences(server, database, table.table, state)]
    found += [line for table in decoded for line in replay_differences(server, apart, table.table, state)]
    read = [line for table in landed for line in snapshot_differences(server, database, table.table, state)]
    read += [line for table in decoded for line in snapshot_differences(server, apart, table.table, state)]
    columns: dict[str, set[str]] = {family.name: set() for family in families}
    for family in families:
        columns[family.name] |= set(family.columns)
    return MatrixRun(inserted, changed, found, read, state.faults, columns)


def _in_silver(server: Server, table: Matrix) -> bool:
    """Text in silver does not depend on the source's character set: one server's VARCHARs of every set are enough."""
    return not table.table.startswith("charsets") or (server.name == "mysql80" and table.table == "charsets")


def write(server: Server, database: str, statements: Sequence[str]) -> None:
    session = server.connect(database=database, sql_mode=SQL_MODE, init_command=f"SET time_zone = '{TIME_ZONE}'")
    with session as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
