"""The JSON text of documents in VARIANTs, with MySQL's text of dates and times."""

import json
from decimal import Decimal

import pytest

from dmdelta.binlog.resultset.row_reader import json_text_value
from dmdelta.binlog.values.jsonb import json_value
from dmdelta.binlog.values.variant import KeyDictionary
from dmdelta.changelog.variant_documents import document_text
from dmdelta.errors import LakehouseError
from dmdelta.model.variant_types import BINARY
from tests.support.jsonb_writer import Opaque, write_jsonb
from tests.support.variant_reader import read_keys


def packed(whole, micros=0):
    return (whole << 24 | micros).to_bytes(8, "little")


NOON = 12 << 12
DAY = (2024 * 13 + 2) << 5 | 29
MOMENTS = [
    (b"\x0c" + packed(DAY << 17 | NOON), '"2024-02-29 12:00:00.000000"'),
    (b"\x07" + packed(DAY << 17 | NOON, 500_000), '"2024-02-29 12:00:00.500000"'),
    (b"\x0c" + packed(NOON), '"0000-00-00 12:00:00.000000"'),
    (b"\x0a" + packed(DAY << 17), '"2024-02-29"'),
    (b"\x0b" + packed(NOON | 5), '"12:00:05.000000"'),
    (b"\xf6\x04\x02\x8c\x22", "12.34"),
]


@pytest.mark.parametrize(("opaque", "text"), MOMENTS)
def test_log_and_snapshot_have_one_text(opaque, text):
    """Typed values in the log, and values parsed from MySQL's text."""
    keys = KeyDictionary(())
    document = {"one": Opaque(opaque), "list": [Opaque(opaque), "2024-02-29 12:00:00"]}
    logged = json_value(write_jsonb(document), keys)
    wanted = f'{{"list":[{text},"2024-02-29 12:00:00"],"one":{text}}}'
    assert document_text(logged, 0, read_keys(keys.metadata)) == wanted
    read = json_text_value(wanted.encode(), keys)
    assert document_text(read, 0, read_keys(keys.metadata)) == wanted


@pytest.mark.parametrize("count", [0, 1, 300])
@pytest.mark.parametrize("large", [False, True])
def test_every_value_reads_back(count, large):
    """Scalars of each kind, long and short texts, in small and large containers."""
    scalars = [None, True, False, 1, -300, 70_000, -(2**40), 2**64 - 1, 1.5, 1e300, "a\"'\\\n é", "x" * 30_000]
    document = {"scalars": scalars, "many": {f"k{number}": [number] for number in range(count)}}
    keys = KeyDictionary(())
    value = json_value(write_jsonb(document, large=large), keys)
    text = document_text(value, 0, read_keys(keys.metadata))
    assert json.loads(text, parse_float=Decimal) == json.loads(json.dumps(document), parse_float=Decimal)


def test_a_type_that_documents_cannot_have():
    """Bytes are never part of a document."""
    with pytest.raises(LakehouseError, match="unknown type"):
        document_text(bytes((BINARY, 1, 0, 0, 0, 0)), 0, ())
