"""Tags of commits for tests of both implementations of histories."""

from dmdelta.lakehouse.access.commit_tag import CommitTag
from dmdelta.model.position import Position


def tag(version, run="one", app="app"):
    """The tag of a commit up to offset 100 × version."""
    return CommitTag(
        app=app,
        version=version,
        task="task",
        source="source",
        run=run,
        begin=Position(1, "b.000001", 4),
        end=Position(1, "b.000001", version * 100),
    )
