"""Recorded binlogs of real servers: applying the decoded changes results in the tables as the server returned them."""

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from dmdelta.binlog.events.boundary import scan_gtids
from dmdelta.binlog.rows.decode import decode_segment
from dmdelta.binlog.rows.decode_options import DecodeOptions
from dmdelta.ddl.parse.statements import statement_targets
from dmdelta.errors import UnknownSchema
from dmdelta.model.change import Op
from dmdelta.model.schema import TableSchema
from dmdelta.quality.json_compare import parse_document
from tests.support.changes import changes_of, decode_bytes, rows_of
from tests.support.golden import SERVERS, Recording, boundaries, canonical, cut_at, recording
from tests.support.gtids import spelled
from tests.support.replay import Change, Tables, same_as_document


@pytest.fixture(params=SERVERS)
def recorded(request: pytest.FixtureRequest) -> Recording:
    """Each server's recording."""
    return recording(request.param)


def _all_changes(recorded: Recording, **settings: Any) -> list[Change]:
    found = []
    for segment in recorded.segments():
        with open(segment.path, "rb") as stream:
            for batch in decode_segment(stream, segment, recorded.options(**settings)):
                found += changes_of(batch)
    return found


def _plain(value: Any, kind: str) -> Any:
    """A decoded value in the canonical form of the source's."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    if kind == "geometry" and isinstance(value, dict):
        value = (value["srid"], value["wkb"])
    if kind == "float":
        return canonical(float(value)) if value is not None else None
    return canonical(value)


def test_tables_equal_those_of_the_server(recorded: Recording) -> None:
    """Every change applied in log order, XA changes at their commit: each table equals the server's SELECT."""
    tables = Tables(keys=lambda name: recorded.tables[name[1]]["keys"])
    for change in _all_changes(recorded):
        if change.op in (Op.XA_COMMIT, Op.XA_ROLLBACK) or recorded.tables.get(change.table or "", {}).get("keys"):
            tables.apply(change)
    assert tables.faults == []
    for name, facts in recorded.tables.items():
        if facts["keys"]:
            landed = list(tables.rows[recorded.schema, name].values())
            assert _compare(facts, landed) == [], name


def _compare(facts: dict[str, Any], landed: list[dict[str, Any]]) -> list[str]:
    columns, keys = facts["columns"], facts["keys"]
    names = [name for name, _ in columns]
    kinds = dict(columns)

    def key_of(row: dict[str, Any]) -> str:
        return repr([_plain(row[key], kinds[key]) for key in keys])

    found = {key_of(row): row for row in landed}
    wrong = [] if len(found) == len(facts["rows"]) else [f"{len(found)} rows, not {len(facts['rows'])}"]
    for row in facts["rows"]:
        source = dict(zip(names, row, strict=True))
        mine = found.get(repr([source[key] for key in keys]))
        if mine is None:
            wrong.append(f"no row {source[keys[0]]}")
            continue
        wrong += [
            f"{name}: {mine.get(name)!r}, not {source[name]!r}"
            for name in names
            if not _same(mine.get(name), source[name], kinds[name])
        ]
    return wrong


def _same(mine: Any, source: Any, kind: str) -> bool:
    if kind == "json" and source is not None:
        return same_as_document(mine, _document(source["json"]))
    return bool(_plain(mine, kind) == source)


def _document(value: Any) -> Any:
    """A canonical document with its numbers restored."""
    if isinstance(value, dict):
        if set(value) == {"decimal"}:
            return Decimal(value["decimal"])
        return {key: _document(item) for key, item in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    return [_document(item) for item in value] if isinstance(value, list) else value


def test_an_sql_null_document_is_absent_and_a_json_null_is_present() -> None:
    """SQL NULL in a JSON column omits the field, JSON null is a variant null."""
    rows = [change.after for change in _all_changes(recording("mysql80")) if change.table == "types" and change.after]
    column = next(name for name, kind in recording("mysql80").tables["types"]["columns"] if kind == "json")
    by_id = {row["id"]: row for row in rows}
    assert column in by_id[1]
    assert by_id[1][column] is None
    assert column not in by_id[4]
    assert parse_document("null") is None


def test_positions_are_unique_and_ordered(recorded: Recording) -> None:
    """(seq, row) is unique and increasing, with structures before the rows of their event."""
    places = [(change.seq, change.row) for change in _all_changes(recorded)]
    assert places == sorted(set(places))


def test_every_transaction_can_be_a_segment(recorded: Recording) -> None:
    """Cut at every boundary, the segments decode to the same as the whole files."""
    whole, pieces = [], []
    for segment in recorded.segments():
        with open(segment.path, "rb") as stream:
            data = stream.read()
        whole += rows_of(decode_bytes(data, segment, recorded.options()))
        for piece, content in cut_at(data, segment, boundaries(data, segment)):
            pieces += rows_of(decode_bytes(content, piece, recorded.options()))
    assert pieces == whole


def test_gtids_are_those_of_the_changes(recorded: Recording) -> None:
    """The scan over headers finds each transaction once, and every GTID that a change carries."""
    runs = []
    for segment in recorded.segments():
        with open(segment.path, "rb") as stream:
            runs += scan_gtids(stream, segment)
    scanned = spelled(runs)
    assert len(scanned) == len(set(scanned)) > 50
    assert {change.gtid for change in _all_changes(recorded) if change.gtid} <= set(scanned)


def test_small_batches_hold_the_same_changes(recorded: Recording) -> None:
    """The batch size does not affect the result, also inside compressed transactions."""
    assert _all_changes(recorded, batch_bytes=1) == _all_changes(recorded)
    assert _all_changes(recorded, batch_rows=1) == _all_changes(recorded)


def test_a_tagged_gtid_has_the_tag_between_server_and_number() -> None:
    """MySQL 9 writes tagged GTIDs."""
    tagged = {change.gtid for change in _all_changes(recording("mysql97")) if change.gtid and ":demo:" in change.gtid}
    assert len(tagged) > 3


def test_prepared_rows_have_an_xid_and_are_followed_by_commit_or_rollback() -> None:
    """Rows of an XA transaction have its xid in canonical form, in both flavors, and a commit or rollback row has it
    too."""
    for name in ("mysql80", "mariadb"):
        changes = _all_changes(recording(name))
        prepared = {change.xid for change in changes if change.op in (Op.INSERT, Op.UPDATE, Op.DELETE)} - {None}
        verdicts = {change.xid: change.op for change in changes if change.op in (Op.XA_COMMIT, Op.XA_ROLLBACK)}
        assert prepared == set(verdicts)
        assert f"X'{b'gtrid'.hex()}',X'{b'xa_commit'.hex()}',7" in prepared
        assert set(verdicts.values()) == {Op.XA_COMMIT, Op.XA_ROLLBACK}


def test_a_partial_image_names_its_columns() -> None:
    """MINIMAL images list the columns of the after image; the key is filled in from the before image."""
    partial = [
        change
        for change in _all_changes(recording("mysql80"))
        if change.table == "changes" and change.image is not None
    ]
    assert {change.op for change in partial} == {Op.INSERT, Op.UPDATE}
    for change in partial:
        assert change.image is not None
        assert change.after is not None
        assert "id" in change.image
        assert set(change.after) == set(change.image)


def test_truncate_and_ddl_name_their_tables() -> None:
    """A DDL row holds the statement and its table; TRUNCATE has its own op."""
    changes = _all_changes(recording("mysql80"))
    assert [change.table for change in changes if change.op is Op.TRUNCATE] == ["truncated", "truncated"]
    added = [change.ddl for change in changes if change.op is Op.DDL and change.table == "added_column"]
    assert any("ADD COLUMN e" in (text or "") for text in added)


def test_structures_come_first_and_include_the_key() -> None:
    """The first row of a table in a segment is its structure, with types, character sets, members and key."""
    first: dict[tuple[int, str], Change] = {}
    for change in _all_changes(recording("mysql80")):
        if change.table == "types" and change.op is not Op.DDL:
            first.setdefault((change.seq >> 40, change.table), change)
    (change,) = first.values()
    assert change.op is Op.SCHEMA
    schema = TableSchema.from_json(change.ddl or "")
    assert schema.primary_key == ("id",)
    kinds = {column.type for column in schema.columns}
    assert {"tinyint", "decimal", "enum", "set", "json", "geometry", "binary", "mediumblob", "timestamp"} <= kinds
    members = {column.members for column in schema.columns if column.type == "enum"}
    assert members == {("a", "é", "c,d")}


def test_without_names_a_known_structure_must_match() -> None:
    """A 5.7 log alone has no column names: the error has the table and the position."""
    recorded = recording("mysql57")
    segment = next(iter(recorded.segments()))
    with open(segment.path, "rb") as stream, pytest.raises(UnknownSchema, match=r"golden\.types") as caught:
        list(decode_segment(stream, segment, DecodeOptions(wanted=lambda *_: True)))
    assert caught.value.context["offset"] > 4
    assert "binlog_row_metadata" in (caught.value.hint or "")


def test_excluded_tables_are_not_decoded(recorded: Recording) -> None:
    """Tables that the options exclude are neither decoded nor described."""
    options = DecodeOptions(wanted=lambda *_: False, statement_targets=statement_targets)
    for segment in recorded.segments():
        with open(segment.path, "rb") as stream:
            tables = {
                change.table for batch in decode_segment(stream, segment, options) for change in changes_of(batch)
            }
            assert tables <= {None}
