"""Literals are exact for every value; key texts are equal where a target may treat values as equal."""

import pyarrow as pa
import pytest

from dmdelta.binlog.values import variant
from dmdelta.model import variant_types
from dmdelta.model.schema import Column, ConstantColumn
from dmdelta.sink.read.literals import NAMELESS, Literals
from tests.unit.changelog.test_variant_arrays import float_piece, images_of

TEXT = Column("c", "varchar", charset="utf8mb4")


def literals_of(*pieces):
    return Literals(images_of([{0: variant.int32_piece(n), 1: piece} for n, piece in enumerate(pieces)]))


def string(text):
    return variant.string_piece(text.encode())


@pytest.mark.parametrize(
    ("column", "piece", "literal"),
    [
        (TEXT, string("it's \\ \0 é"), r"'it''s \\ \0 é'"),
        (TEXT, string(""), "''"),
        (Column("c", "int"), variant.int32_piece(-5), "-5"),
        (Column("c", "decimal", precision=60, scale=1), string("1" * 59 + ".5"), "1" * 59 + ".5"),
        (Column("c", "float"), float_piece(0.1), "0.10000000149011612E0"),
        (Column("c", "double"), variant.double_piece(1e300), "1e+300"),
        (Column("c", "double"), variant.double_piece(-2.0), "-2E0"),
        (Column("c", "date"), string("2020-00-31"), "'2020-00-31'"),
        (Column("c", "time"), string("-838:59:59.5"), "'-838:59:59.5'"),
        (Column("c", "blob"), variant.binary_piece(b"\0'\xff"), "x'0027FF'"),
        (Column("c", "blob"), variant.binary_piece(b""), "x''"),
        (Column("c", "enum", members=("a", "b")), string(""), NAMELESS),
        (Column("c", "enum", members=("a", "")), string(""), "''"),
        (ConstantColumn("c", "varchar", value="it's"), variant_types.NULL, "'it''s'"),
    ],
    ids=str,
)
def test_literals(column, piece, literal):
    """The literal of each type, next to a NULL."""
    found = literals_of(piece, variant_types.NULL)
    assert found.of(column).to_pylist()[0] == literal
    assert found.values(column).to_pylist() == [literal, literal if isinstance(column, ConstantColumn) else "NULL"]


def test_tuples_conditions_and_assignments():
    """A row as a tuple, as a condition that selects it, and as assignments of its known columns."""
    found, number = literals_of(string("x"), variant_types.NULL), Column("id", "int")
    assert found.tuples((number, TEXT)).to_pylist() == ["(0,'x')", "(1,NULL)"]
    assert found.identities((number, TEXT)).to_pylist() == ["(0,'x')", None]
    columns = (("`id`", number), ("`c`", TEXT))
    assert found.conditions(columns).to_pylist() == [
        "`id` = 0 AND `c` BETWEEN 'x' AND 'x' AND BINARY CONVERT(`c` USING utf8mb4) = BINARY 'x'",
        "`id` = 1 AND `c` IS NULL",
    ]
    assert found.assignments(columns, {}).to_pylist() == ["`id`=0, `c`='x'", "`id`=1, `c`=NULL"]
    assert found.assignments(columns, {"c": [True, False]}).to_pylist() == ["`id`=0, `c`='x'", "`id`=1"]


def test_keys_with_an_enum_value_without_a_name():
    """A condition compares it with '', which is a value without a protest; a name of the ENUM remains one."""
    values, number = (string(""), string("a"), variant_types.NULL), Column("id", "int")
    found, enum = literals_of(*values), Column("c", "enum", members=("a",))
    assert found.identities((number, enum)).to_pylist() == ["(0,'')", "(1,'a')", None]
    assert found.identities((enum,)).to_pylist() == ["''", "'a'", None]
    named = Column("c", "enum", members=("a", ""))
    assert literals_of(*values).identities((named,)).to_pylist() == ["''", "'a'", None]


def test_a_long_text_is_compared_once():
    """No index covers the text, and the packet size is limited."""
    long = "x" * 3073
    assert literals_of(string(long), string("y"), variant_types.NULL).conditions([("`c`", TEXT)]).to_pylist() == [
        f"BINARY CONVERT(`c` USING utf8mb4) = BINARY '{long}'",
        "`c` BETWEEN 'y' AND 'y' AND BINARY CONVERT(`c` USING utf8mb4) = BINARY 'y'",
        "`c` IS NULL",
    ]


def test_conditions_of_values_without_a_comparable_literal():
    """An ENUM value without a name is number 0; a document that the target stores as text is compared as text."""
    enum = Column("c", "enum", members=("a",))
    assert literals_of(string(""), string("a")).conditions([("`c`", enum)]).to_pylist() == [
        "`c` = 0",
        "`c` = 'a' AND BINARY CONVERT(`c` USING utf8mb4) = BINARY 'a'",
    ]
    images = images_of([{0: variant.int32_piece(1)}])
    found = Literals(images, {"j": pa.array(['{"a":"it\'s"}'], pa.large_string())})
    for as_text, wanted in (
        ((), """`j` = CAST('{"a":"it\'\'s"}' AS JSON)"""),
        (("j",), """BINARY CONVERT(`j` USING utf8mb4) = BINARY '{"a":"it\'\'s"}'"""),
    ):
        assert found.conditions([("`j`", Column("j", "json"))], as_text).to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("one", "other"), [("Ada ", "ADA"), ("wow", "VOU"), ("jim", "yim"), ("a\x01b", "AB"), ("x \x02", "X")]
)
def test_key_texts_of_values_that_some_collation_treats_as_equal(one, other):
    """Case, control characters, trailing spaces, and letters that some languages treat as equal."""
    found = literals_of(string(one), string(other), string("z"), variant_types.NULL).key_texts(TEXT, None).to_pylist()
    assert found[0] == found[1] != found[2]
    assert found[3] is None


def test_key_texts_of_prefixes_and_numbers():
    """Only the indexed prefix counts; zero has no sign."""
    assert literals_of(string("abcd"), string("éxyz")).key_texts(TEXT, 2).to_pylist() == ["AB", "éX"]
    blob = Column("c", "blob")
    assert literals_of(variant.binary_piece(b"abc")).key_texts(blob, 2).to_pylist() == ["6162"]
    zeros = literals_of(variant.double_piece(0.0), variant.double_piece(-0.0)).key_texts(Column("c", "double"), None)
    assert len(set(zeros.to_pylist())) == 1
