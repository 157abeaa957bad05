"""Changes applied from memory equal those applied from bronze: recorded binlogs of every server, all types."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlparse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet import ParquetFile

from dmdelta import failpoint
from dmdelta.bronze import driver_decoding
from dmdelta.bronze.datasource import register, segments_to_json
from dmdelta.bronze.landing import land, open_bronze, plan_landing
from dmdelta.bronze.progress import newest_landed
from dmdelta.changelog import batch_memory
from dmdelta.changelog.batch_memory import MEMORY_BYTES, BatchMemory
from dmdelta.changelog.context import SourceContext
from dmdelta.errors import CommitConflict, Fenced, UnknownSchema
from dmdelta.failpoint import VARIABLE, CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import is_provided
from dmdelta.model.change import ROW_OPS
from dmdelta.model.position import Position
from dmdelta.model.schema import StructureFrom, TableSchema
from dmdelta.model.segment import Segment
from dmdelta.rules import BlockAllowList, SourceRules
from dmdelta.segments import list_segments
from dmdelta.silver.apply.apply import apply_table
from dmdelta.silver.apply.request import ApplyRequest, RowsPath
from dmdelta.silver.apply.silver_context import SilverContext
from dmdelta.silver.rows.batch import Batch
from dmdelta.silver.rows.strategy import Mode
from dmdelta.silver.schema.range_profile import TableEvents, table_events, tables_with_events
from dmdelta.silver.table.state import silver_position
from tests.support.golden import GOLDEN, SERVERS, recording
from tests.support.paths import assert_same, assert_same_rows, both, exact_rows, on_executors, plain_rows
from tests.support.pipeline import TASK, Pipeline

pytestmark = pytest.mark.skipif(is_provided(), reason="with a provided Spark, batches do not stay in memory")

RECORDED = [
    ("golden", name) for name in ("types", "changes", "key_changes", "keyless", "minimal_keyless", "added_column")
]
QUICK = [("golden", name) for name in ("types", "minimal_keyless", "added_column")]


@dataclass
class Landed:
    """A recorded log in bronze and in memory.

    Attributes:
        kept, plain: the source's context with and without its memory.
        rows: bronze's rows as Arrow yields them, in log order.
        ends: the positions at which batches begin and end.
        places: every position of a row, and the log's begin and end.
    """

    spark: object
    kept: SourceContext
    plain: SourceContext
    rows: list
    ends: list
    places: list


def source_of(server: str, lakehouse: Lakehouse, memory: BatchMemory, run: str = "test") -> SourceContext:
    rules = SourceRules(server, BlockAllowList(do_dbs=("golden",)))
    flavor = "mariadb" if server == "mariadb" else "mysql"
    return SourceContext(lakehouse, TASK, server, run, flavor, rules, memory)


def structures(server: str, segments: list[Segment]) -> list[StructureFrom]:
    """Structures that MySQL 5.7 does not log, from the log's start."""
    known = recording(server).known if server == "mysql57" else {}
    return [StructureFrom(name, segments[0].begin_position, schemas[-1]) for name, schemas in known.items()]


def land_all(spark, source: SourceContext, segments: list[Segment], batches: int) -> list:
    """Land a log in a number of batches; the landed ranges."""
    size = -(-sum(segment.size for segment in segments) // batches)
    landed = []
    while batch := plan_landing(segments, landed[-1] if landed else None, size):
        landed.append(
            land(spark, source, batch, landed[-1] if landed else None, structures(source.source_id, segments))
        )
    return landed


@pytest.fixture(scope="module")
def shared(spark, tmp_path_factory):
    """One bronze table for all recordings, each as its own source."""
    lakehouse = Lakehouse(root=str(tmp_path_factory.mktemp("paths") / "lake"))
    register(spark)
    open_bronze(spark, lakehouse.bronze, TASK)
    return lakehouse


LONGER = ("mysql80", "mysql57")
"""Servers whose recordings are in the long lane, where those of the quicker ones have most of their types."""


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.long if name in LONGER else ()) for name in SERVERS]
)
def landed(request, spark, shared) -> Landed:
    """The recording of a server."""
    memory = BatchMemory(MEMORY_BYTES)
    source = source_of(request.param, shared, memory)
    segments = list_segments(GOLDEN / request.param, request.param)
    ranges = land_all(spark, source, segments, 3)
    frame = spark.table(shared.bronze).where(f"source_id = '{request.param}'").orderBy("epoch", "seq", "row")
    rows = plain_rows(frame)
    places = {Position(row["epoch"], row["binlog_file"], row["binlog_pos"]) for row in rows}
    ends = [ranges[0].begin, *(each.end for each in ranges)]
    assert len(ranges) > 1
    return Landed(spark, source, replace(source, memory=BatchMemory()), rows, ends, sorted({*places, *ends}))


def test_bronze_equals_the_bronze_of_the_executors(landed, spark, tmp_path):
    """The same rows with the same bytes, one file for each batch, in log order."""
    server = landed.kept.source_id
    segments = list_segments(GOLDEN / server, server)
    lakehouse = Lakehouse(root=str(tmp_path / "lake"))
    open_bronze(spark, lakehouse.bronze, TASK)
    memory = BatchMemory(MEMORY_BYTES)
    with on_executors():
        land_all(spark, source_of(server, lakehouse, memory), segments, 3)
    assert memory.size == 0
    theirs = exact_rows(spark.table(lakehouse.bronze))
    ours = spark.table(landed.plain.bronze).where(f"source_id = '{server}'")
    assert_same_rows(exact_rows(ours), theirs, "bronze")
    paths = [row.path for row in ours.selectExpr("_metadata.file_path AS path").distinct().collect()]
    assert len(paths) == len(landed.ends) - 1
    for path in paths:
        inside = ParquetFile(unquote(urlparse(path).path)).read(columns=["epoch", "seq"])
        events = list(zip(inside["epoch"].to_pylist(), inside["seq"].to_pylist(), strict=True))
        assert events == sorted(events)


@settings(max_examples=60)
@given(data=st.data())
def test_any_range_is_in_memory_as_in_bronze(landed, data):
    """For any range and table, the rows and their order are those of bronze, with the same bytes."""
    compare_range(landed, *draw_range(landed, data), data.draw(st.sampled_from(tables_of(landed))))


def tables_of(landed):
    return sorted({(row["schema_name"], row["table_name"]) for row in landed.rows if row["table_name"]})


def draw_range(landed, data):
    low, high = sorted(data.draw(st.sets(st.sampled_from(range(len(landed.places))), min_size=2, max_size=2)))
    return landed.places[low], landed.places[high]


def compare_range(landed, begin, end, table):
    rows = landed.kept.memory.rows(begin, end, table)
    assert rows is not None, "the range is not in memory"
    inside = [row for row in landed.rows if begin.key <= (row["epoch"], row["seq"]) < end.key]
    for name in (table, (table[0], None), (None, None)):
        of_name = [row for row in inside if (row["schema_name"], row["table_name"]) == name]
        found = [row for row in rows.to_pylist() if (row["schema_name"], row["table_name"]) == name]
        assert_same_rows(found, of_name, f"{name}")


@pytest.mark.parametrize("wrong", ["begin", "end", "table"])
def test_a_wrong_slice_is_detected(landed, monkeypatch, wrong):
    """Sabotage: rows of another range or table make the comparison fail."""
    right = batch_memory._Part.slices
    middle = landed.places[len(landed.places) // 2]

    def sabotaged(part, begin, end, name):
        begin, end = (middle, end) if wrong == "begin" else (begin, middle) if wrong == "end" else (begin, end)
        return right(part, begin, end, ("golden", "other") if wrong == "table" else name)

    def compare_all():
        for name in tables_of(landed):
            compare_range(landed, landed.places[0], landed.places[-1], name)

    compare_all()
    monkeypatch.setattr(batch_memory._Part, "slices", sabotaged)
    with pytest.raises(AssertionError):
        compare_all()


@settings(max_examples=4)
@given(data=st.data())
def test_the_profile_is_that_of_bronze(landed, data):
    """Tables, counts, positions, structures and XA groups are equal for any range."""
    begin, end = draw_range(landed, data)
    found = tables_with_events(landed.spark, landed.kept, begin, end)
    assert found == tables_with_events(landed.spark, landed.plain, begin, end)
    name = data.draw(st.sampled_from(tables_of(landed)))
    one = table_events(landed.spark, landed.kept, name, begin, end)
    assert one == table_events(landed.spark, landed.plain, name, begin, end)


def test_changes_are_those_of_bronze(landed, spark):
    """As data frames, with the conditions of a batch: outside XA, of one table, in one range."""
    begin, end = landed.places[0], landed.places[-1]
    for name in [("golden", "types"), ("golden", "key_changes")]:
        schema = TableSchema(*name, ())
        events = TableEvents(*name, dict.fromkeys(ROW_OPS[:3], 1), begin, end)
        batch = Batch(
            spark=spark,
            bronze=landed.plain.bronze,
            source_id=landed.plain.source_id,
            target="",
            schema=schema,
            begin=begin,
            end=end,
            events=events,
            mode=Mode.NORMAL,
            empty=False,
        )
        held = replace(batch, memory=landed.kept.memory.rows(begin, end, name))
        assert held.changes.schema == batch.changes.schema
        ours = exact_rows(held.changes)
        assert ours
        assert_same_rows(ours, exact_rows(batch.changes), f"{name}")


def recorded_pair(spark, tmp_path, server, tables, batch_bytes):
    """Both paths of a recording in several batches."""

    def work(pipeline):
        flavor = "mariadb" if server == "mariadb" else "mysql"
        known = [schemas[-1] for schemas in recording(server).known.values()] if server == "mysql57" else []
        pipeline.batch_bytes = batch_bytes
        pipeline.catch_up(GOLDEN / server, server, ["golden"], flavor, lambda: known, [name for _, name in tables])

    return both(spark, lambda name: Pipeline(spark, tmp_path / name), work)


def test_silver_is_the_same(spark, tmp_path):
    """Row by row with silver's own columns: all types, partial images, no key, a statement in a batch."""
    memory, bronze = recorded_pair(spark, tmp_path, "mysql80", QUICK, 120_000)
    assert_same(spark, memory, bronze, QUICK)


@pytest.mark.long
@pytest.mark.parametrize("server", ["mysql80", "mysql57", "mysql97", "mariadb"])
def test_silver_is_the_same_for_every_table_and_server(spark, tmp_path, server):
    """The same in several batches, with key changes."""
    tables = [table for table in RECORDED if table[1] in recording(server).tables]
    memory, bronze = recorded_pair(spark, tmp_path, server, tables, 30_000)
    assert_same(spark, memory, bronze, tables)


@pytest.fixture
def bench(spark, lakehouse):
    """A small recording that has not landed: (source with memory, its segments)."""
    register(spark)
    open_bronze(spark, lakehouse.bronze, TASK)
    return source_of("mysql80", lakehouse, BatchMemory(MEMORY_BYTES)), list_segments(GOLDEN / "mysql80", "mysql80")[2:4]


def failing_at(monkeypatch, point):
    failpoint._passed.clear()
    monkeypatch.setenv(VARIABLE, f"{point.value}=error:CommitConflict")


@pytest.mark.parametrize(
    "point", [CrashPoint.LAND_DECODED, CrashPoint.LAND_BEFORE_COMMIT, CrashPoint.LAND_AFTER_COMMIT]
)
def test_a_crash_while_landing(spark, bench, monkeypatch, point):
    """Before the commit neither bronze nor memory has the rows, after it bronze has them; a new process resumes."""
    source, segments = bench
    batch = plan_landing(segments, None)
    failing_at(monkeypatch, point)
    with pytest.raises(CommitConflict, match="injected"):
        land(spark, source, batch, None)
    committed = point is CrashPoint.LAND_AFTER_COMMIT
    assert (newest_landed(spark, source) is not None) == committed
    assert bool(source.memory.size) == committed
    monkeypatch.delenv(VARIABLE)
    again = replace(source, memory=BatchMemory(MEMORY_BYTES))
    reached = newest_landed(spark, again)
    if reached is None:
        reached = land(spark, again, batch, None)
    assert reached.end == batch.end
    assert plan_landing(segments, reached) is None
    rows = spark.table(source.bronze)
    assert rows.count() == rows.select("epoch", "seq", "row").distinct().count() > 0


def test_a_fenced_landing_leaves_no_rows_in_memory(spark, bench):
    """Another run landed the batch: its rows are not this run's."""
    source, segments = bench
    batch = plan_landing(segments, None)
    land(spark, replace(source, run="other", memory=BatchMemory()), batch, None)
    with pytest.raises(Fenced):
        land(spark, source, batch, None)
    assert source.memory.size == 0


@pytest.mark.parametrize("bound", ["SMALL_BYTES", "DECODED_BYTES"])
def test_a_batch_above_the_limits_is_decoded_on_executors(spark, bench, monkeypatch, bound):
    """By the bytes of the log, or of the decoded rows: nothing is lost, and memory has a gap."""
    source, segments = bench
    monkeypatch.setattr(driver_decoding, bound, 1000)
    landed = land(spark, source, plan_landing(segments, None), None)
    assert source.memory.rows(landed.begin, landed.end) is None
    batch = plan_landing(segments, None)
    wanted = spark.read.format("mysql_binlog").option("segments", segments_to_json(batch.segments))
    wanted = wanted.option("block-allow-list", source.rules.allow_list.to_json()).load()
    assert_same_rows(exact_rows(spark.table(source.bronze)), exact_rows(wanted), "bronze")


def test_decoding_errors_are_those_of_executors(spark, bench):
    """The same class, text, hint and facts, whichever process decodes a log without column names and structures."""
    memory = BatchMemory(MEMORY_BYTES)
    source = source_of("mysql57", bench[0].lakehouse, memory)
    batch = plan_landing(list_segments(GOLDEN / "mysql57", "mysql57"), None)
    errors = []
    for decoding in (nullcontext, on_executors):
        with decoding(), pytest.raises(UnknownSchema) as caught:
            land(spark, source, batch, None)
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert errors[0].hint == errors[1].hint
    assert memory.size == 0


def request_of(source, landed, name, memory):
    context = SilverContext(source.lakehouse, TASK, source.source_id, source.run, source.flavor, source.rules, memory)
    return ApplyRequest(
        context=context, schema=name[0], table=name[1], begin=landed.begin, end=landed.end, batch=landed.batch
    )


@pytest.mark.parametrize(
    "fate",
    [
        pytest.param("kept", marks=pytest.mark.long),
        "evicted",
        pytest.param("restarted", marks=pytest.mark.long),
        "crashed",
    ],
)
def test_what_memory_lacks_is_read_from_bronze(spark, bench, monkeypatch, fate):
    """A table that waits while its batch is evicted, a restart, and a crash after the commit: always the same rows."""
    source, _ = bench
    segments = list_segments(GOLDEN / "mysql80", "mysql80")[-1:]
    name, memory = ("golden", "key_changes"), source.memory
    landed = land(spark, source, plan_landing(segments, None), None)
    rows = memory.rows(landed.begin, landed.end)
    assert rows is not None
    if fate == "evicted":
        small = BatchMemory(memory.size)
        small.add(landed.begin, landed.end, rows)
        later = replace(landed.end, offset=landed.end.offset + 1)
        failing_at(monkeypatch, CrashPoint.MEMORY_EVICTED)
        with pytest.raises(CommitConflict, match="injected"):
            small.add(landed.end, later, rows)
        monkeypatch.delenv(VARIABLE)
        memory = small
    if fate == "restarted":
        memory = BatchMemory(MEMORY_BYTES)
    request = request_of(source, landed, name, memory)
    if fate == "crashed":
        failing_at(monkeypatch, CrashPoint.SILVER_FROM_MEMORY)
        with pytest.raises(CommitConflict, match="injected"):
            apply_table(spark, request)
        monkeypatch.delenv(VARIABLE)
        request = request_of(source, landed, name, BatchMemory(MEMORY_BYTES))
        request = replace(request, begin=silver_position(spark, request.target).tag.end)  # as the next start plans it
    result = apply_table(spark, request)
    # The crash came after the commit of the rows: only statements are left.
    assert result.path is {"kept": RowsPath.MEMORY, "crashed": None}.get(fate, RowsPath.BRONZE)
    found = spark.table(source.lakehouse.silver(*name)).count()
    assert found == len(recording("mysql80").tables["key_changes"]["rows"])
