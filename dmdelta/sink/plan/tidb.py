"""Differences between TiDB's SQL and MySQL's: statements, character sets and collations."""

from dmdelta.ddl.parse.actions import RenameTo, given_column, taken_column
from dmdelta.ddl.parse.alter_parser import alter_actions
from dmdelta.ddl.parse.splitting import is_of_execution, split_alter
from dmdelta.ddl.tokens import tokenize
from dmdelta.errors import SchemaError

_CHARSETS = frozenset({"ascii", "binary", "gbk", "latin1", "utf8", "utf8mb4"})
_COLLATIONS = frozenset(
    {"ascii_bin", "binary", "gbk_bin", "gbk_chinese_ci", "latin1_bin", "utf8mb4_0900_ai_ci", "utf8mb4_0900_bin"}
    | {f"{charset}_{order}" for charset in ("utf8", "utf8mb4") for order in ("bin", "general_ci", "unicode_ci")}
)


def tidb_statements(sql: str) -> list[str]:
    """A statement as TiDB supports it: the actions of an ALTER TABLE one by one, because TiDB's cannot depend on
    each other.

    Raises:
        SchemaError: the actions exchange column names: one by one they would have another effect.
    """
    split = split_alter(sql)
    if split is None:
        return [sql]
    # TiDB rejects some of what says how the source executed the ALTER.
    kept = [(text, tokens) for text in split.actions if not is_of_execution(tokens := tokenize(text))]
    parts = [(text, alter_actions(tokens, "")) for text, tokens in kept]
    actions = [action for _, read in parts for action in read]
    for number, action in enumerate(actions):
        given = given_column(action)
        if given and given in {taken_column(later) for later in actions[number + 1 :]}:
            raise SchemaError(
                f"TiDB cannot reuse the column name {given} in one statement: {sql[:200]}",
                hint="use dmdelta binlog replace with statements that rename through a temporary name",
            )
    # After a rename the other actions would not find the table.
    parts.sort(key=lambda part: any(isinstance(action, RenameTo) for action in part[1]))
    return [split.of([text]) for text, _ in parts]


def tidb_charset(charset: str) -> str:
    """The character set for a column of TiDB: the source's, or one that holds every character."""
    charset = _tidb_name(charset)
    return charset if charset in _CHARSETS else "utf8mb4"


def tidb_collation(charset: str, collation: str) -> str:
    """A collation of TiDB that distinguishes at least what the source's does: a key never rejects the source's rows.

    Args:
        charset: of the column at the source.
    """
    collation = _tidb_name(collation)
    if collation in _COLLATIONS:
        return collation
    # Only this one compares trailing spaces, as all of MySQL's newer collations do.
    return "utf8mb4_0900_bin" if "_0900_" in collation else f"{tidb_charset(charset)}_bin"


def _tidb_name(name: str) -> str:
    """The name with `utf8` in place of MySQL's newer name `utf8mb3`."""
    return "utf8" + name.removeprefix("utf8mb3") if name.startswith("utf8mb3") else name
