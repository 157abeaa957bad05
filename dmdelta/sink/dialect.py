"""TiDB's SQL where it is not MySQL's: what a statement becomes there, and its character sets and collations."""

from dmdelta.ddl.actions import Action, Add, Change, Drop, RenameColumn, RenameTo
from dmdelta.ddl.alter_reading import alter_actions
from dmdelta.ddl.splitting import split_alter
from dmdelta.ddl.tokens import tokenize
from dmdelta.errors import SchemaError

_CHARSETS = frozenset({"ascii", "binary", "gbk", "latin1", "utf8", "utf8mb4"})
_COLLATIONS = frozenset(
    {"ascii_bin", "binary", "gbk_bin", "gbk_chinese_ci", "latin1_bin", "utf8mb4_0900_ai_ci", "utf8mb4_0900_bin"}
    | {f"{charset}_{order}" for charset in ("utf8", "utf8mb4") for order in ("bin", "general_ci", "unicode_ci")}
)
_OF_THE_SOURCE = ("ALGORITHM", "LOCK")
"""How the source went about it: nothing to TiDB, which refuses some of it."""


def tidb_statements(sql: str) -> list[str]:
    """A statement as TiDB can do it: an ALTER TABLE's actions one by one, as there they cannot build on each other.

    Raises:
        SchemaError: they exchange names: one after the other, they would do something else.
    """
    split = split_alter(sql)
    if split is None:
        return [sql]
    parts = [(text, alter_actions(tokenize(text), "")) for text in split.actions]
    actions = [action for _, read in parts for action in read]
    for number, action in enumerate(actions):
        given = _given(action)
        if given and given in {_freed(later) for later in actions[number + 1 :]}:
            raise SchemaError(
                f"TiDB cannot give the name {given} on in one statement: {sql[:200]}",
                hint="dmdelta binlog replace it with statements that go over another name",
            )
    kept = [part for part in parts if not part[0].upper().startswith(_OF_THE_SOURCE)]
    # Under its new name the table would not be found by the others.
    kept.sort(key=lambda part: any(isinstance(action, RenameTo) for action in part[1]))
    return [split.of([text]) for text, _ in kept]


def tidb_charset(charset: str) -> str:
    """The character set for a column of TiDB: its own, or one that holds everything."""
    charset = _tidb_name(charset)
    return charset if charset in _CHARSETS else "utf8mb4"


def tidb_collation(charset: str, collation: str) -> str:
    """A collation of TiDB that tells apart at least what the source's does: a key never refuses the source's rows.

    Args:
        charset: of the column at the source.
    """
    collation = _tidb_name(collation)
    if collation in _COLLATIONS:
        return collation
    # Only this one minds trailing blanks, as all of MySQL's newer collations do.
    return "utf8mb4_0900_bin" if "_0900_" in collation else f"{tidb_charset(charset)}_bin"


def _tidb_name(name: str) -> str:
    """Without MySQL's newer word for its three-byte UTF-8."""
    return "utf8" + name.removeprefix("utf8mb3") if name.startswith("utf8mb3") else name


def _given(action: Action) -> str:
    """The name that a column has behind the action, and had not before."""
    if isinstance(action, Add):
        return action.definition.name.lower()
    return _names(action)[1]


def _freed(action: Action) -> str:
    """The name that no column has behind the action."""
    if isinstance(action, Drop):
        return action.name.lower()
    return _names(action)[0]


def _names(action: Action) -> tuple[str, str]:
    """A column's names before and behind a renaming."""
    if isinstance(action, RenameColumn):
        return action.was.lower(), action.name.lower()
    if isinstance(action, Change) and action.was.lower() != action.definition.name.lower():
        return action.was.lower(), action.definition.name.lower()
    return "", ""
