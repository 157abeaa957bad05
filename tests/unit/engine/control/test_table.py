"""The control table under a local root: without a JVM, and read only if it has changed."""

import pytest

from dmdelta.engine.control.state import Request
from dmdelta.engine.control.table import ControlTable, PendingCommands
from dmdelta.lakehouse.access.deferred_session import deferred_session
from dmdelta.lakehouse.access.delta_rs.local_table import LocalTable
from dmdelta.lakehouse.layout import Lakehouse


def test_an_unchanged_table_is_not_read_again(tmp_path, monkeypatch):
    """A poll costs a listing of the log. A request of another process is found."""
    session = deferred_session(lambda: pytest.fail("a JVM is started"))
    polled, other = (ControlTable(session, Lakehouse(root=str(tmp_path)), "t") for _ in range(2))
    assert polled.asked() == PendingCommands()
    other.ask(Request.PAUSE)
    asked = polled.asked()
    assert asked.request.request is Request.PAUSE
    with monkeypatch.context() as patched:
        patched.setattr(LocalTable, "rows", lambda *_: pytest.fail("the table is read again"))
        assert polled.asked() == asked
    other.ask(Request.RESUME)
    assert polled.asked().request.request is Request.RESUME
