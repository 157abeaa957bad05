"""Column definitions in DDL text."""

import pytest

from dmdelta.ddl.parse.columns import parse_definition
from dmdelta.ddl.tokens import Cursor, tokenize
from dmdelta.ddl.types.added_values import Fill
from dmdelta.ddl.types.literals import Literal, LiteralKind


def parse(text, **keys):
    return parse_definition(Cursor(tokenize(text)), **keys)


NUMBERS = [
    ("DEFAULT 7", "7"),
    ("DEFAULT +7", "+7"),
    ("DEFAULT -7", "-7"),
    ("DEFAULT - 7", "-7"),
    ("DEFAULT 1.5", "1.5"),
    ("DEFAULT 1.", "1."),
    ("DEFAULT .5", "0.5"),
    ("DEFAULT -.5", "-0.5"),
    ("DEFAULT 1e3", "1e3"),
    ("DEFAULT 1E3", "1E3"),
    ("DEFAULT -1e-3", "-1e-3"),
    ("DEFAULT 1e+3", "1e+3"),
    ("DEFAULT 2.5E-3", "2.5E-3"),
    ("DEFAULT 1. NOT NULL", "1."),
    ("DEFAULT TRUE", "1"),
    ("DEFAULT false", "0"),
]
TEXTS = [
    ("DEFAULT 'x y'", "x y"),
    ("DEFAULT ''", ""),
    ("DEFAULT 'FIRST'", "FIRST"),
    ("DEFAULT 'a' 'b'\"c\"", "abc"),
    ("DEFAULT 'a' COMMENT 'b'", "a"),
    ("DEFAULT _utf8mb4'x'", "x"),
    ("DEFAULT _latin1 'x'", "x"),
    (r"DEFAULT '100\%\_'", r"100\%\_"),
]
BYTES = [
    ("DEFAULT b'101'", "5", 1, 2),
    ("DEFAULT B'0'", "0", 1, 2),
    ("DEFAULT b'100000001'", "257", 2, 2),
    ("DEFAULT x'1F'", "31", 1, 16),
    ("DEFAULT X'000a'", "10", 2, 16),
    ("DEFAULT x''", "0", 0, 16),
]
DEFAULTS = [
    *((clause, Literal(text, LiteralKind.NUMBER)) for clause, text in NUMBERS),
    *((clause, Literal(text)) for clause, text in TEXTS),
    *((clause, Literal(text, LiteralKind.BYTES, size, base)) for clause, text, size, base in BYTES),
]


@pytest.mark.parametrize(("clause", "value"), DEFAULTS)
def test_a_literal_default_is_its_value(clause, value):
    """Numbers as they are written; texts without quotes and character set, joined; bytes as their number, size and base."""
    definition = parse(f"c VARCHAR(9) {clause} FIRST")
    assert (definition.default, definition.computed, definition.follows) == (value, "", "")


@pytest.mark.parametrize(
    ("clause", "computed"),
    [
        ("DEFAULT b'102'", "DEFAULT of base 2"),
        ("DEFAULT x'zz'", "DEFAULT of base 16"),
        ("DEFAULT _latin1 x'E9'", "DEFAULT _LATIN1"),
        ("DEFAULT _latin1'é'", "DEFAULT _LATIN1"),
        ("DEFAULT _ucs2'ab'", "DEFAULT _UCS2"),
        ("DEFAULT N'a'", "DEFAULT N"),
        ("DEFAULT 0x1F", "DEFAULT 0x1F"),
        ("DEFAULT 1e", "DEFAULT 1e"),
        ("DEFAULT CURRENT_TIMESTAMP", "DEFAULT CURRENT_TIMESTAMP"),
        ("DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", "DEFAULT CURRENT_TIMESTAMP"),
        ("DEFAULT now(3)", "DEFAULT now"),
        ("DEFAULT (uuid())", "DEFAULT ("),
        ("DEFAULT ((1 + 2) * f(3))", "DEFAULT ("),
        ("DEFAULT (a) NOT NULL", "DEFAULT ("),
        ("AUTO_INCREMENT", "AUTO_INCREMENT"),
        ("SERIAL DEFAULT VALUE", "SERIAL"),
        ("AS (a + 1) STORED", "AS"),
        ("GENERATED ALWAYS AS (a DEFAULT 5) VIRTUAL", "AS"),
    ],
)
def test_a_default_that_the_server_computes(clause, computed):
    """Its values are unknown; the clauses after it are still read."""
    definition = parse(f"c INT {clause} AFTER b")
    assert (definition.default, definition.computed, definition.follows) == (None, computed, "b")
    assert definition.fill(definition.column).unknown is not None
    assert definition.generated is (computed == "AS")


@pytest.mark.parametrize(
    ("text", "mariadb", "fill"),
    [
        ("c TEXT DEFAULT ''", False, Fill()),
        ("c TEXT NOT NULL DEFAULT ''", False, Fill("''")),
        ("c BLOB DEFAULT x'61'", False, Fill()),
        ("c TEXT CHARSET utf8mb4 DEFAULT 'a'", True, Fill("'a'")),
        ("c INT DEFAULT b'101'", True, Fill("CAST('5' AS INT)")),
        ("c INT DEFAULT x'31'", False, Fill("CAST('49' AS INT)")),
        (
            "c INT DEFAULT x'31'",
            True,
            Fill(unknown="DEFAULT of bytes generates values for existing rows that are not in the log"),
        ),
    ],
)
def test_a_default_that_servers_read_differently(text, mariadb, fill):
    """MySQL ignores one of a TEXT outside strict mode; for MariaDB x'31' is the text '1', also for a number."""
    definition = parse(text, mariadb=mariadb)
    assert definition.fill(definition.column) == fill


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("a INT DEFAULT +7", "7"),
        ("a INT DEFAULT 1e3", None),
        ("a VARCHAR(9) NOT NULL DEFAULT 'it''s'", "it's"),
        ("a VARCHAR(9) DEFAULT NULL", None),
        ("a BIT(3) DEFAULT b'101'", None),
        ("a TIMESTAMP NULL DEFAULT '2024-01-01'", None),
        ("a DATE DEFAULT (CURRENT_DATE)", None),
    ],
)
def test_a_column_has_its_literal_default(text, default):
    """The text that depends on no session; None if a statement with this text as default is not the same."""
    assert parse(text).column.default == default


def test_auto_increment_is_not_null():
    """Also without NOT NULL."""
    assert not parse("c INT AUTO_INCREMENT").column.nullable


@pytest.mark.parametrize("clause", ["DEFAULT", "DEFAULT _utf8mb4", "DEFAULT b", "DEFAULT -", "DEFAULT ("])
def test_an_incomplete_default_does_not_raise(clause):
    """It has no value."""
    assert parse(f"c INT {clause}").default is None


@pytest.mark.parametrize(
    ("clauses", "fill"),
    [
        ("", Fill()),
        ("NULL", Fill()),
        ("DEFAULT NULL", Fill()),
        ("NOT NULL DEFAULT NULL", Fill()),
        ("NOT NULL", Fill("CAST('0' AS INT)")),
        ("NOT NULL DEFAULT 5", Fill("CAST('5' AS INT)")),
        ("DEFAULT 5", Fill("CAST('5' AS INT)")),
        ("AUTO_INCREMENT", Fill(unknown="AUTO_INCREMENT generates values for existing rows that are not in the log")),
    ],
)
def test_the_value_in_existing_rows(clauses, fill):
    """The default, NULL, or for a column without NULLs the implicit default of its type."""
    definition = parse(f"c INT {clauses}")
    assert definition.fill(definition.column) == fill


@pytest.mark.parametrize(
    ("clauses", "mariadb", "implicit", "known"),
    [
        ("", False, True, False),
        ("", True, True, False),
        ("ON UPDATE CURRENT_TIMESTAMP", False, True, False),
        ("DEFAULT NULL", False, True, True),
        ("DEFAULT NULL", True, True, False),
        ("DEFAULT '0000-00-00 00:00:00'", False, True, True),
        ("DEFAULT CURRENT_TIMESTAMP", False, True, False),
        ("NULL", False, False, True),
        ("NULL DEFAULT NULL", True, False, True),
        ("NOT NULL", False, False, False),
        ("AS (a)", False, False, False),
        ("AS ROW START", True, False, True),
    ],
)
def test_a_timestamp_without_null(clauses, mariadb, implicit, known):
    """It is NOT NULL with a default that depends on the table's other columns, unless the statement says otherwise."""
    parsed = parse(f"c TIMESTAMP(3) {clauses}", mariadb=mariadb)
    assert (parsed.implicit, parsed.fill(parsed.column).unknown is None) == (implicit, known)
    assert parsed.column.nullable is not (implicit or clauses == "NOT NULL")


def test_where_a_type_ends():
    """Before the clauses."""
    text = "c TIMESTAMP(3) NULL"
    assert text[: parse(text).type_end] == "c TIMESTAMP(3)"


@pytest.mark.parametrize(
    ("definition", "unknown"),
    [
        ("FLOAT DEFAULT 1.005", False),
        ("FLOAT(7,2) DEFAULT 1", False),
        ("FLOAT(7,2) DEFAULT 1.005", True),
        ("DOUBLE(7,2) DEFAULT '1.005'", True),
    ],
)
def test_a_float_with_a_scale_is_rounded_by_the_server(definition, unknown):
    """The column's structure does not contain the scale, so silver does not know the value."""
    parsed = parse(f"c {definition}")
    assert (parsed.fill(parsed.column).unknown is not None) is unknown


PLAIN = {"nullable": True, "visible": True, "key": False, "unique": False, "versioned": False, "follows": None}
CLAUSES = [
    ("", {}),
    ("NOT NULL", {"nullable": False}),
    ("UNIQUE", {"unique": True}),
    ("UNIQUE KEY", {"unique": True}),
    ("UNIQUE KEY KEY", {"unique": True, "key": True, "nullable": False}),
    ("PRIMARY KEY", {"key": True, "nullable": False}),
    ("PRIMARY", {"key": True, "nullable": False}),
    ("KEY", {"key": True, "nullable": False}),
    ("INVISIBLE", {"visible": False}),
    ("VISIBLE", {}),
    ("FIRST", {"follows": ""}),
    ("AFTER `first`", {"follows": "first"}),
    ("GENERATED ALWAYS AS ROW START", {"versioned": True}),
    ("AS ROW END INVISIBLE", {"versioned": True, "visible": False}),
    ("SERIAL DEFAULT VALUE", {"nullable": False, "unique": True}),
    ("ON UPDATE CURRENT_TIMESTAMP FIRST", {"follows": ""}),
    ("ON UPDATE CURRENT_TIMESTAMP(6) FIRST", {"follows": ""}),
    ("REFERENCES t (a) ON DELETE SET NULL ON UPDATE NO ACTION FIRST", {"follows": ""}),
    ("REFERENCES t (a) ON DELETE SET DEFAULT FIRST", {"follows": ""}),
    ("REFERENCES t (a) ON DELETE CASCADE FIRST", {"follows": ""}),
    ("REFERENCES t (invisible, `unique`)", {}),
    ("COMMENT 'x' FIRST", {"follows": ""}),
    ("COMMENT = 'x' INVISIBLE", {"visible": False}),
    ("COLUMN_FORMAT DEFAULT NOT NULL", {"nullable": False}),
    ("STORAGE DEFAULT NOT NULL", {"nullable": False}),
    ("SRID 4326 NOT NULL", {"nullable": False}),
    ("CHECK (c > 0 AND invisible) FIRST", {"follows": ""}),
    ("CONSTRAINT CHECK (c > 0) FIRST", {"follows": ""}),
    ("CONSTRAINT invisible CHECK (c > 0)", {}),
    ("CONSTRAINT ascii CHECK (c > 0) NOT NULL", {"nullable": False}),
    ("CONSTRAINT visible CHECK (c > 0) INVISIBLE", {"visible": False}),
]


@pytest.mark.parametrize(("clauses", "wanted"), CLAUSES, ids=[clauses for clauses, _ in CLAUSES])
def test_clauses(clauses, wanted):
    """A word of one clause, a name, or an expression is not another clause."""
    definition = parse(f"c TINYINT {clauses}")
    assert {name: getattr(definition, name) for name in PLAIN} == {**PLAIN, **wanted}
    assert (definition.column.nullable, definition.column.visible) == (definition.nullable, definition.visible)
    assert definition.default is None
    assert definition.charset is None


@pytest.mark.parametrize(
    ("clauses", "charset", "length"),
    [
        ("", None, 3),
        ("CHARACTER SET utf8mb4", "utf8mb4", 12),
        ("CHARACTER SET = utf8mb4", "utf8mb4", 12),
        ("CHAR SET utf8mb4", "utf8mb4", 12),
        ("CHARSET utf8", "utf8mb3", 9),
        ("COLLATE latin1_bin", "latin1", 3),
        ("COLLATE 'ucs2_bin'", "ucs2", 6),
        ("CHARACTER SET utf8mb4 COLLATE uca1400_ai_ci", "utf8mb4", 12),
        ("COLLATE uca1400_ai_ci", None, 3),
        ("CHARACTER SET utf8mb4 NOT NULL COLLATE utf8mb4_bin", "utf8mb4", 12),
        ("ASCII", "latin1", 3),
        ("UNICODE", "ucs2", 6),
        ("CONSTRAINT unicode CHECK (c > 'a')", None, 3),
        ("CONSTRAINT ascii CHECK (c > 'a')", None, 3),
        ("CHARSET", None, 3),
    ],
)
def test_the_character_set_of_a_column(clauses, charset, length):
    """It determines how many bytes the characters take."""
    column = parse(f"c CHAR(3) {clauses}").column
    assert (column.type, column.charset, column.length) == ("char", charset, length)


@pytest.mark.parametrize(
    ("text", "kind", "charset"),
    [
        ("LONG CHARACTER SET latin1", "mediumtext", "latin1"),
        ("LONG CHAR SET latin1", "mediumtext", "latin1"),
        ("LONG CHAR VARYING CHARACTER SET latin1", "mediumtext", "latin1"),
        ("LONG VARCHARACTER CHAR SET latin1", "mediumtext", "latin1"),
        ("LONG CHARACTER VARYING BYTE", "mediumblob", None),
        ("LONG BYTE", "mediumblob", None),
    ],
)
def test_the_character_set_of_a_long(text, kind, charset):
    """CHARACTER after LONG is part of the type only before VARYING."""
    column = parse(f"c {text} NOT NULL").column
    assert (column.type, column.charset, column.nullable) == (kind, charset, False)


def test_text_in_the_character_set_of_its_table():
    """A column without a character set of its own; its length is that of the definition."""
    definition = parse("c TEXT(100)")
    assert (definition.within("latin1").type, definition.within("utf8mb4").type) == ("tinytext", "text")
    assert definition.within(None) == definition.column
    own = parse("c CHAR(3) CHARACTER SET latin1")
    assert own.within("utf8mb4") == own.column
    assert parse("c CHAR(3) BYTE").column.type == "binary"


@pytest.mark.parametrize(
    ("keys", "kind"), [({}, "json"), ({"mariadb": False}, "json"), ({"mariadb": True}, "longtext")]
)
def test_json_is_text_in_mariadb_only(keys, kind):
    assert parse("c JSON", **keys).column.type == kind


@pytest.mark.parametrize("text", ["", "c", "c ,", "( INT", "c 5"])
def test_text_without_a_name_and_a_type_is_no_definition(text):
    assert parse(text) is None


def test_serial_is_a_unique_number_that_the_server_generates():
    definition = parse("c SERIAL")
    assert (definition.column.type, definition.column.unsigned, definition.column.nullable) == ("bigint", True, False)
    assert (definition.computed, definition.unique, definition.key) == ("SERIAL", True, False)
