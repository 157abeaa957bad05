"""What a relay folder on a Unity Catalog Volume cannot do: files there are written once, from begin to end, and locks
reach no other machine.
"""

import tempfile
from hashlib import sha256
from pathlib import Path

_VOLUMES = Path("/Volumes")
"""Databricks mounts them there."""


def is_on_volume(folder: Path) -> bool:
    """Whether a folder is on a Volume of Databricks."""
    return folder.is_relative_to(_VOLUMES)


def scratch_folder(folder: Path) -> Path:
    """Where this machine keeps what cannot be in `folder`: in a place of its own for a Volume, else there."""
    if not is_on_volume(folder):
        return folder
    return Path(tempfile.gettempdir()) / f"dmdelta-{sha256(str(folder).encode()).hexdigest()[:16]}"
