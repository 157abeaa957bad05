"""Sessions by thread and profile: two writers never share one, because transaction ids are session confs."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from dmdelta.engine.apply.writer import ThreadSessions
from dmdelta.lakehouse.profiles import Profile


class Session:
    """Stands in for a session's confs; `newSession` starts from those of the context."""

    def __init__(self):
        self.conf = self
        self.confs = {}
        self.interrupted = False

    def newSession(self):  # noqa: N802 - Spark's name
        return Session()

    def get(self, name):
        return self.confs.get(name, "context's")

    def set(self, name, value):
        self.confs[name] = value

    def interruptAll(self):  # noqa: N802 - Spark's name
        self.interrupted = True


def test_each_thread_has_one_session_for_each_profile():
    """Repeated calls return the same one, and a cancellation reaches all of them."""
    sessions, together = ThreadSessions(Session()), Barrier(2)

    def own(_):
        together.wait()
        found = {profile: sessions.own(profile) for profile in Profile}
        assert all(sessions.own(profile) is session for profile, session in found.items())
        return found

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(own, range(2))
    found = [*one.values(), *other.values()]
    assert len({id(session) for session in found}) == 2 * len(Profile)
    shuffled = "spark.sql.shuffle.partitions"
    assert {thread[Profile.SMALL].conf.get(shuffled) for thread in (one, other)} == {"1"}
    assert {thread[Profile.LARGE].conf.get(shuffled) for thread in (one, other)} == {"context's"}
    sessions.interrupt_all()
    assert all(session.interrupted for session in found)
