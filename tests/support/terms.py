"""The terms to avoid in texts, each with the term to use instead, and where they occur.

A phrase is a regular expression that ignores case. Code in a text (between backticks, in a code block) is not checked: persisted
names do not change.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TERMS = {
    r"(is|are|was|were|be|been) told": "is reported, shows, states",
    r"tells? of": "reports",
    r"goes on by itself|go on by itself": "retries automatically, continues automatically",
    r"(table|shard|task)s? goes? on": "table resumed, continues",
    r"(begin|begins|begun|began|beginning) anew": "restart from, start a new epoch",
    r"(is|are|was|were) given up|gives? up what": "is cancelled, stop timed out",
    r"(is|are|was|were|be|been|table) cared for|cares? for": "maintain, maintenance finished",
    r"table care": "table maintenance",
    r"for ever": "indefinitely",
    r"(stand|stands|stood|standing) still": "is paused, is idle",
    r"(keep|keeps|kept|keeping) apart": "quarantine",
    r"(put|puts|putting) (\w+ )?right": "repair",
    r"mend(s|ed|ing)?": "fix, repair",
    r"past bronze": "bypassing bronze",
    r"somebody": "an operator, another writer",
    r"nobody": "no one, or name who does not",
    r"(as often as it is|what may pass)": "retries exhausted, a transient failure",
    r"so that one": "so that it",
    r"(is|are|was|were|be|been|take|takes|taken) aside": "is paused",
    r"what it has come to": "its state",
    r"(is|was|were|are) so already": "no change needed, already has this state",
    r"there was no account to do so": "not tested on",
    r"^asked to$": "command received",
    r"^rows fail\b": "expectation failed",
    r"what is in flight": "the ranges in progress",
}
_PHRASES = {
    re.compile(rf"(?<!\w)(?:{phrase})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE): use for phrase, use in TERMS.items()
}
_CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"``.*?``|`[^`\n]*`")


@dataclass(frozen=True, slots=True)
class Text:
    """A text that a reader sees: a page, a message, a comment.

    Attributes:
        line: where it begins in its file.
    """

    path: Path
    line: int
    content: str


def avoided(text: Text) -> Iterator[str]:
    """The terms to avoid in a text, each as `file:line: term: use …`."""
    prose = _CODE_BLOCK.sub(_blank, text.content)
    prose = _CODE.sub(_blank, prose)
    for phrase, use in _PHRASES.items():
        for match in phrase.finditer(prose):
            line = text.line + prose.count("\n", 0, match.start())
            yield f"{text.path}:{line}: {match[0]!r}: use {use!r}"


def page_text(path: Path) -> Text:
    """The text of a document; of a changelog, its newest section."""
    content = path.read_text("utf-8")
    if path.name == "CHANGELOG.md":
        first, _, _ = content.partition("\n## ")
        newest = content[len(first) :].split("\n## ")[1]
        return Text(path, first.count("\n") + 2, newest)
    return Text(path, 1, content)


def code_texts(path: Path) -> Iterator[Text]:
    """The texts of a module: docstrings, comments and messages, which are all its string literals of several words."""
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield Text(path, node.lineno, node.value)
    yield from _comments(path, source)


def _comments(path: Path, source: str) -> Iterator[Text]:
    """A module's comments; lines that follow one another are one text."""
    lines: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if lines and token.start[0] > lines[-1][0] + 1:
            yield Text(path, lines[0][0], "\n".join(line for _, line in lines))
            lines = []
        lines.append((token.start[0], token.string.lstrip("# ")))
    if lines:
        yield Text(path, lines[0][0], "\n".join(line for _, line in lines))


def _blank(match: re.Match[str]) -> str:
    """Spaces instead of code; lines stay where they are."""
    return re.sub(r"[^\n]", " ", match[0])
