"""The page that a benchmark writes beside itself and prints."""

import os
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path


def measured_by(command: str) -> str:
    """Who measured, when, on how many cores: how a page's first sentence begins."""
    return f"`{command}` on {datetime.now(timezone.utc):%Y-%m-%d}: {os.cpu_count()} cores"


def write_page(name: str, title: str, setting: str, lines: Iterable[object]) -> None:
    """Write `benchmarks/name`: a title, how it was measured, and the lines of a table."""
    text = "\n".join([f"# {title}", "", setting, "", *map(str, lines), ""])
    Path(__file__).with_name(name).write_text(text)
    print(text)
