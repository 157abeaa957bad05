"""The prompt of `dmdelta sql`: history, completion and highlighting."""

import os
import re
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

from dmdelta.cli.render import console, print_error
from dmdelta.cli.sql_output import Output, write
from dmdelta.engine.live.sql import SqlSession
from dmdelta.errors import DmdeltaError

KEYWORDS = ("SELECT", "FROM", "WHERE", "JOIN", "LEFT JOIN", "GROUP BY", "ORDER BY", "LIMIT", "SHOW TABLES")
_WORD = re.compile(r"[\w.$]+")
_ENDS = ("exit", "quit")


def run_prompt(session: SqlSession, output: Output) -> None:
    """Read statements, each up to a semicolon, and show their rows, until Ctrl-D, `exit` or `quit`."""
    names = session.names()
    console().print(
        f"{session.tables.task.spec.name}: {len(names):,} tables, SHOW TABLES lists them. End a query with ; and the "
        "session with Ctrl-D.",
        markup=False,
    )
    prompt = _prompt(names)
    while True:
        try:
            text = prompt.prompt("sql> ").strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.rstrip("; ").lower() in _ENDS:
            return
        if text.strip("; "):
            _answer(session, text, output)


def _answer(session: SqlSession, text: str, output: Output) -> None:
    try:
        with console(stderr=True).status("running …"):
            rows = session.query(text)
        write(rows, output)
    except DmdeltaError as error:
        print_error(error, debug=False)
    except KeyboardInterrupt:
        session.cancel()
        console(stderr=True).print("cancelled", markup=False)


def _prompt(names: list[str]) -> "PromptSession[str]":
    return PromptSession(
        history=FileHistory(str(_history_file())),
        completer=WordCompleter([*names, *KEYWORDS], ignore_case=True, match_middle=True, pattern=_WORD),
        lexer=PygmentsLexer(SqlLexer),
        multiline=True,
        prompt_continuation=lambda width, _line, _wrapped: "... ".rjust(width),
        key_bindings=_keys(),
    )


def _keys() -> KeyBindings:
    """Enter executes a statement that ends with a semicolon, and otherwise starts a new line."""

    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    keys = KeyBindings()
    keys.add("enter")(enter)
    return keys


def is_complete(text: str) -> bool:
    """Whether a text is a statement that can be executed, or ends the session."""
    text = text.strip()
    return not text or text.endswith(";") or text.lower() in _ENDS


def _history_file() -> Path:
    """The file of earlier statements. Statements may contain values, so that only its owner may read it."""
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "dmdelta"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "sql-history"
    file.touch(mode=0o600)
    return file
