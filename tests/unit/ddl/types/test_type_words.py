"""Type names in DDL text, and the bytes that text takes in a character set."""

from dataclasses import replace

import pytest

from dmdelta.ddl.tokens import Cursor, tokenize
from dmdelta.ddl.types.added_values import implicit_fill
from dmdelta.ddl.types.conversion import plan_conversion
from dmdelta.ddl.types.type_words import characters, charset_named, converted, in_charset, known_type, parse_type
from dmdelta.model.schema import Column


def parse(text, **keys):
    return parse_type(Cursor(tokenize(text)), "c", **keys)


TYPES = [
    ("BOOL", Column("c", "tinyint"), 0),
    ("INT(11) UNSIGNED", Column("c", "int", unsigned=True), 11),
    ("INT ZEROFILL", Column("c", "int", unsigned=True), 0),
    ("INT SIGNED", Column("c", "int"), 0),
    ("BIGINT UNSIGNED ZEROFILL", Column("c", "bigint", unsigned=True), 0),
    ("SERIAL", Column("c", "bigint", unsigned=True), 0),
    ("DECIMAL", Column("c", "decimal", precision=10), 0),
    ("NUMERIC(5)", Column("c", "decimal", precision=5), 5),
    ("DEC(7,3)", Column("c", "decimal", precision=7, scale=3), 7),
    ("DECIMAL(0)", Column("c", "decimal", precision=10), 0),
    ("FLOAT", Column("c", "float"), 0),
    ("FLOAT(24)", Column("c", "float"), 24),
    ("FLOAT(25)", Column("c", "double"), 25),
    ("FLOAT(30,2)", Column("c", "float"), 30),
    ("DOUBLE PRECISION", Column("c", "double"), 0),
    ("DOUBLE PRECISION UNSIGNED", Column("c", "double", unsigned=True), 0),
    ("BIT", Column("c", "bit", length=1), 0),
    ("BIT(9)", Column("c", "bit", length=9), 9),
    ("TIME", Column("c", "time"), 0),
    ("DATETIME(3)", Column("c", "datetime", precision=3), 3),
    ("YEAR(4)", Column("c", "year"), 4),
    ("CHAR", Column("c", "char", length=1), 0),
    ("CHAR(0)", Column("c", "char", length=0), 0),
    ("CHARACTER(7)", Column("c", "char", length=7), 7),
    ("CHAR VARYING(7)", Column("c", "varchar", length=7), 7),
    ("VARCHAR2(7)", Column("c", "varchar", length=7), 7),
    ("BINARY", Column("c", "binary", length=1), 0),
    ("VARBINARY(9)", Column("c", "varbinary", length=9), 9),
    ("NCHAR(2)", Column("c", "char", length=6, charset="utf8mb3"), 2),
    ("NATIONAL CHAR(2)", Column("c", "char", length=6, charset="utf8mb3"), 2),
    ("NATIONAL CHAR VARYING(2)", Column("c", "varchar", length=6, charset="utf8mb3"), 2),
    ("NATIONAL CHARACTER VARYING(2)", Column("c", "varchar", length=6, charset="utf8mb3"), 2),
    ("NATIONAL VARCHARACTER(2)", Column("c", "varchar", length=6, charset="utf8mb3"), 2),
    ("NCHAR", Column("c", "char", length=3, charset="utf8mb3"), 0),
    ("NCHAR VARCHAR(2)", Column("c", "varchar", length=6, charset="utf8mb3"), 2),
    ("NCHAR VARCHARACTER(2)", Column("c", "varchar", length=6, charset="utf8mb3"), 2),
    ("NCHAR VARYING(2)", Column("c", "varchar", length=6, charset="utf8mb3"), 2),
    ("NVARCHAR(2)", Column("c", "varchar", length=6, charset="utf8mb3"), 2),
    ("LONG", Column("c", "mediumtext"), 0),
    ("LONG VARCHAR", Column("c", "mediumtext"), 0),
    ("LONG VARCHARACTER", Column("c", "mediumtext"), 0),
    ("LONG CHAR VARYING", Column("c", "mediumtext"), 0),
    ("LONG CHARACTER VARYING", Column("c", "mediumtext"), 0),
    ("LONG VARBINARY", Column("c", "mediumblob"), 0),
    ("LONG NOT NULL", Column("c", "mediumtext"), 0),
    ("TEXT", Column("c", "text"), 0),
    ("TEXT(255)", Column("c", "tinytext"), 255),
    ("TEXT(256)", Column("c", "text"), 256),
    ("TEXT(65535)", Column("c", "text"), 65535),
    ("TEXT(65536)", Column("c", "mediumtext"), 65536),
    ("BLOB(16777215)", Column("c", "mediumblob"), 16777215),
    ("BLOB(16777216)", Column("c", "longblob"), 16777216),
    ("BLOB(4294967295)", Column("c", "longblob"), 4294967295),
    ("TEXT(4294967296)", Column("c", "longtext"), 4294967296),
    ("MEDIUMTEXT", Column("c", "mediumtext"), 0),
    ("ENUM('a ','b')", Column("c", "enum", members=("a", "b")), 0),
    ("SET('1','2')", Column("c", "set", members=("1", "2")), 0),
    ("INET4", Column("c", "binary", length=4), 4),
    ("INET6", Column("c", "binary", length=16), 16),
    ("UUID", Column("c", "binary", length=16), 16),
    ("POINT", Column("c", "geometry"), 0),
    ("JSON", Column("c", "json"), 0),
    ("HyperLink(3)", Column("c", "hyperlink"), 3),
]


@pytest.mark.parametrize(("text", "column", "length"), TYPES, ids=[text for text, *_ in TYPES])
def test_a_type(text, column, length):
    """The column, whose length counts characters, and the number that is written after the type."""
    assert parse(text) == (column, length)


@pytest.mark.parametrize("text", ["", "5", "`int`", "'int'", "(3)", ", INT"])
def test_text_that_is_no_type(text):
    assert parse(text) is None


def test_json_in_mariadb_is_text():
    """Always in utf8mb4; other types are the same."""
    assert parse("JSON", mariadb=True) == (Column("c", "longtext", charset="utf8mb4"), 0)
    assert parse("INT", mariadb=True) == parse("INT")


def test_a_vector_in_mariadb_is_bytes_of_a_fixed_length():
    """Four per float, which the server fills with zeros; MySQL's has its own type."""
    column = Column("c", "binary", length=6144)
    assert parse("VECTOR(1536)", mariadb=True) == (column, 6144)
    assert parse("VECTOR(1536)")[0] == Column("c", "vector")
    assert implicit_fill(replace(column, length=8)).sql == "X'0000000000000000'"
    longer = plan_conversion(Column("c", "varbinary", length=8), replace(column, length=12))
    assert longer.sql == "rpad({column}, 12, X'00')"


@pytest.mark.parametrize(
    ("text", "charset", "column"),
    [
        ("VARCHAR(16383)", "utf8mb4", Column("c", "varchar", length=65532, charset="utf8mb4")),
        ("VARCHAR(16384)", "utf8mb4", Column("c", "mediumtext", charset="utf8mb4")),
        ("VARCHAR(21845)", "utf8mb3", Column("c", "varchar", length=65535, charset="utf8mb3")),
        ("VARCHAR(32767)", "ucs2", Column("c", "varchar", length=65534, charset="ucs2")),
        ("VARCHAR(32768)", "ucs2", Column("c", "mediumtext", charset="ucs2")),
        ("CHAR(255)", "latin1", Column("c", "char", length=255, charset="latin1")),
        ("CHAR(9)", "binary", Column("c", "binary", length=9)),
        ("VARCHAR(9)", "binary", Column("c", "varbinary", length=9)),
        ("TINYTEXT", "binary", Column("c", "tinyblob")),
        ("LONGTEXT", "binary", Column("c", "longblob")),
        ("ENUM('a')", "binary", Column("c", "enum", members=("a",), charset="binary")),
        ("ENUM('a')", "latin1", Column("c", "enum", members=("a",), charset="latin1")),
        ("TEXT", "utf8mb4", Column("c", "text", charset="utf8mb4")),
        ("TEXT(63)", "utf8mb4", Column("c", "tinytext", charset="utf8mb4")),
        ("TEXT(64)", "utf8mb4", Column("c", "text", charset="utf8mb4")),
        ("TEXT(4294967295)", "utf8mb4", Column("c", "longtext", charset="utf8mb4")),
        ("TEXT(64)", None, Column("c", "tinytext")),
        ("INT", "latin1", Column("c", "int")),
        ("BLOB(9)", "latin1", Column("c", "tinyblob")),
    ],
)
def test_a_type_in_a_character_set(text, charset, column):
    """Its length counts bytes; text that would not fit a row becomes TEXT, and text in `binary` bytes."""
    parsed, length = parse(text)
    assert in_charset(parsed, charset, length) == column


def test_a_length_in_characters_is_not_that_of_a_text_type():
    """Without the number that is written after it, TEXT keeps its type."""
    assert in_charset(Column("c", "tinytext"), "utf8mb4").type == "tinytext"


@pytest.mark.parametrize(
    ("column", "charset", "wanted"),
    [
        (Column("c", "varchar", length=40, charset="utf8mb4"), "latin1", ("varchar", 10)),
        (Column("c", "char", length=10, charset="latin1"), "utf8mb4", ("char", 40)),
        (Column("c", "varchar", length=20000, charset="latin1"), "utf8mb4", ("mediumtext", 0)),
        (Column("c", "varchar", length=10), "utf8mb4", ("varchar", 40)),
        (Column("c", "tinytext", charset="latin1"), "utf8mb4", ("text", 0)),
        (Column("c", "tinytext", charset="utf8mb4"), "latin1", ("tinytext", 0)),
        (Column("c", "text", charset="utf8mb3"), "utf8mb4", ("mediumtext", 0)),
        (Column("c", "text", charset="utf8mb4"), "utf8mb3", ("text", 0)),
        (Column("c", "mediumtext", charset="latin1"), "ucs2", ("longtext", 0)),
        (Column("c", "longtext", charset="latin1"), "utf8mb4", ("longtext", 0)),
        (Column("c", "text"), "utf8mb4", ("text", 0)),
        (Column("c", "text", charset="latin1"), "binary", ("blob", 0)),
        (Column("c", "enum", charset="latin1", members=("a",)), "utf8mb4", ("enum", 0)),
    ],
)
def test_a_converted_column_holds_as_many_characters(column, charset, wanted):
    """In its new character set."""
    found = converted(column, charset)
    assert (found.type, found.length) == wanted
    assert found.charset == (None if charset == "binary" else charset)


def test_what_a_conversion_leaves_unchanged():
    """Bytes, numbers, and text that is already in the character set."""
    for column in (Column("c", "int"), Column("c", "blob"), Column("c", "text", charset="latin1")):
        assert converted(column, "latin1") is column
    unknown = converted(Column("c", "varchar", length=40, charset="utf8mb4"), None)
    assert (unknown.charset, unknown.length) == (None, 10)


@pytest.mark.parametrize(
    ("word", "charset"),
    [
        ("UTF8MB4", "utf8mb4"),
        ("utf8", "utf8mb3"),
        ("utf8_general_ci", "utf8mb3"),
        ("utf8mb4_0900_ai_ci", "utf8mb4"),
        ("latin1_bin", "latin1"),
        ("binary", "binary"),
        ("uca1400_ai_ci", None),
        ("DEFAULT", None),
        ("", None),
    ],
)
def test_the_character_set_of_a_name(word, charset):
    """Of a character set or of a collation."""
    assert charset_named(word) == charset


@pytest.mark.parametrize(
    ("charset", "length"),
    [("latin1", 12), ("gbk", 6), ("utf8mb3", 4), ("ujis", 4), ("utf32", 3), (None, None), ("other", None)],
)
def test_the_length_in_characters(charset, length):
    assert characters(Column("c", "char", length=12, charset=charset)) == length


def test_known_types():
    """A type that is the word of a statement is unknown."""
    assert all(known_type(parse(text)[0]) for text in ("INT", "UUID", "TEXT", "ENUM('a')", "VECTOR(3)"))
    assert not known_type(parse("HYPERLINK")[0])
