"""A session that starts with its first use."""

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from dmdelta.lakehouse.access.deferred_session import deferred_session
from dmdelta.lakehouse.access.local_root import local_table
from dmdelta.lakehouse.layout import Lakehouse
from dmdelta.lakehouse.session import clone_session


class Clone:
    """A session of Spark Connect."""

    version = "a clone"


class Starts:
    """Counts the sessions that it starts."""

    def __init__(self):
        self.count, self.lock = 0, threading.Lock()

    def __call__(self):
        with self.lock:
            self.count += 1
        return SimpleNamespace(version="4.2.0", cloneSession=Clone)


def test_it_starts_once_with_the_first_use_from_any_thread():
    starts = Starts()
    session = deferred_session(starts)
    assert starts.count == 0
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda _: session.version, range(64)))
    assert (set(versions), starts.count) == ({"4.2.0"}, 1)


def test_a_clone_is_deferred_too():
    """A control table has its own session, which it does not use under a local root."""
    starts = Starts()
    clone = clone_session(deferred_session(starts))
    assert starts.count == 0
    assert (clone.version, starts.count) == ("a clone", 1)


def test_delta_rs_needs_no_session(tmp_path):
    starts = Starts()
    place = Lakehouse(root=str(tmp_path)).metadata("task_control")
    assert local_table(deferred_session(starts), place).commits(None) == []
    assert starts.count == 0
