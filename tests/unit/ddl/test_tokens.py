"""Tokens of statements."""

import pytest

from dmdelta.ddl.tokens import Cursor, Kind, split_at_commas, tokenize


def texts(tokens):
    return [token.text for token in tokens]


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("a `b` 'c' (", [(Kind.WORD, "a"), (Kind.NAME, "b"), (Kind.STRING, "c"), (Kind.MARK, "(")]),
        ("`a``b` ``", [(Kind.NAME, "a`b"), (Kind.NAME, "")]),
        ('\'it\'\'s\' "a""b" "a\'b"', [(Kind.STRING, "it's"), (Kind.STRING, 'a"b'), (Kind.STRING, "a'b")]),
        (r"'a\'b\\c\n\t\0\Z\d'", [(Kind.STRING, "a'b\\c\n\t\0\x1ad")]),
        (r"'100\%\_'", [(Kind.STRING, r"100\%\_")]),
        (r"'\r\b'", [(Kind.STRING, "\r\b")]),
        ("a-- b\nc", [(Kind.WORD, "a"), (Kind.WORD, "c")]),
        ("a--b", [(Kind.WORD, "a"), (Kind.MARK, "-"), (Kind.MARK, "-"), (Kind.WORD, "b")]),
        ("a #b\nc --", [(Kind.WORD, "a"), (Kind.WORD, "c")]),
        ("a/* b\nc */d /**/ e", [(Kind.WORD, "a"), (Kind.WORD, "d"), (Kind.WORD, "e")]),
        ("/*! a */ /*!50100 b */ /*M!100100 c */ /*M d */", [(Kind.WORD, "a"), (Kind.WORD, "b"), (Kind.WORD, "c")]),
        ("$a_1 表", [(Kind.WORD, "$a_1"), (Kind.WORD, "表")]),
        ("a--\x01b\nc--\x7fd\ne--\rf", [(Kind.WORD, "a"), (Kind.WORD, "c"), (Kind.WORD, "e")]),
        ("a--\u00a0", [(Kind.WORD, "a"), (Kind.MARK, "-"), (Kind.MARK, "-"), (Kind.WORD, "\u00a0")]),
        ("a\t\n\v\f\r b", [(Kind.WORD, "a"), (Kind.WORD, "b")]),
        ("a\x1cb", [(Kind.WORD, "a"), (Kind.MARK, "\x1c"), (Kind.WORD, "b")]),
        (
            "t\U0001f600 `\U0001f600``` '\U0001f600'",
            [(Kind.WORD, "t?"), (Kind.NAME, "?`"), (Kind.STRING, "\U0001f600")],
        ),
        ("'a", [(Kind.MARK, "'"), (Kind.WORD, "a")]),
        ("", []),
    ],
)
def test_tokens(sql, wanted):
    """Names and texts have no quotes and escapes; comments are left out, except for versioned ones."""
    assert [(token.kind, token.text) for token in tokenize(sql)] == wanted


@pytest.mark.parametrize(
    "name",
    ["ลูกค้า", "ग्राहक", "cafe\u0301", "t€", "t\uff0cu", "t\u200bu", "\u0080", "t\u0085u", "\u00a0t", "t\u3000u", "t\u2028u", "\uffff"],
    ids=ascii,
)  # fmt: skip
def test_a_name_outside_ascii_is_one_word(name):
    """Servers take each character from U+0080 on for a part of a name, blanks and punctuation, too."""
    assert [(token.kind, token.text) for token in tokenize(f"TRUNCATE {name},x")][1:3] == [
        (Kind.WORD, name),
        (Kind.MARK, ","),
    ]


def test_a_token_knows_its_place():
    """Its text in the statement is between its offsets, with the quotes."""
    sql = "DROP /* x */ `a``b` 'c' ,"
    assert [sql[token.begin : token.end] for token in tokenize(sql)] == ["DROP", "`a``b`", "'c'", ","]


def test_only_a_word_or_a_mark_is_a_keyword():
    """In upper case."""
    assert [token.keyword for token in tokenize("drop `drop` 'drop' (")] == ["DROP", "", "", "("]


@pytest.mark.parametrize("name", ["\u0131ndex", "\u017fet", "\ufb01rst", "pa\u00dfword"])
def test_a_word_outside_ascii_is_no_keyword(name):
    """Even if Python's upper case of it is one."""
    assert tokenize(name.upper())[0].keyword == name.upper()
    assert tokenize(name)[0].keyword == name


def test_a_cursor_consumes_what_it_accepts():
    """All of the keywords or none."""
    cursor = Cursor(tokenize("IF NOT EXISTS t"))
    assert not cursor.accept("IF", "EXISTS")
    assert (cursor.position, cursor.peek(), cursor.peek(2), cursor.peek(4)) == (0, "IF", "EXISTS", "")
    assert cursor.accept("IF", "NOT")
    assert cursor.accept_any("NOT", "IF") == ""
    assert cursor.accept_any("IF", "EXISTS") == "EXISTS"
    assert texts(cursor.since(1)) == ["NOT", "EXISTS"]
    assert (cursor.identifier(), cursor.ended) == ("t", True)
    assert (cursor.take(), cursor.identifier(), cursor.accept_any(""), cursor.peek()) == (None, None, "", "")
    assert cursor.rest() == []


@pytest.mark.parametrize(
    ("sql", "name", "rest"),
    [
        ("t x", ("d", "t"), ["x"]),
        ("s.t x", ("s", "t"), ["x"]),
        (".t x", ("d", "t"), ["x"]),
        ("`s` . 't' x", ("s", "t"), ["x"]),
        ("(", None, ["("]),
        ("s.(", None, ["("]),
        ("s.", None, []),
        ("", None, []),
    ],
)
def test_a_table_name(sql, name, rest):
    """With or without its schema."""
    cursor = Cursor(tokenize(sql))
    assert (cursor.table_name("d"), texts(cursor.rest())) == (name, rest)


@pytest.mark.parametrize(
    ("sql", "inner", "rest"),
    [
        ("() a", [], ["a"]),
        ("(a, (b), ((c))) d", ["a", ",", "(", "b", ")", ",", "(", "(", "c", ")", ")"], ["d"]),
        ("(a) (b)", ["a"], ["(", "b", ")"]),
        ("(a", ["a"], []),
        ("a (b)", None, ["a", "(", "b", ")"]),
        ("", None, []),
    ],
)
def test_a_parenthesis(sql, inner, rest):
    """Its content up to the matching end."""
    cursor = Cursor(tokenize(sql))
    found = cursor.parenthesized()
    assert (found if found is None else texts(found), texts(cursor.rest())) == (inner, rest)


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("a, b c, d", [["a"], ["b", "c"], ["d"]]),
        ("a (b, c), d", [["a", "(", "b", ",", "c", ")"], ["d"]]),
        ("a ((b), c), d", [["a", "(", "(", "b", ")", ",", "c", ")"], ["d"]]),
        (",a,,", [["a"]]),
        ("", []),
    ],
)
def test_parts_between_commas(sql, parts):
    """Not those inside of parentheses; an empty part is left out."""
    assert [texts(part) for part in split_at_commas(tokenize(sql))] == parts
