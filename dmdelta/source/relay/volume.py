"""Restrictions of a relay folder on a Unity Catalog Volume: files can only be written sequentially, and locks do not
apply across machines.
"""

import tempfile
from hashlib import sha256
from pathlib import Path

_VOLUMES = Path("/Volumes")
"""Where Databricks mounts them."""


def is_on_volume(folder: Path) -> bool:
    """Whether a folder is on a Volume of Databricks."""
    return folder.is_relative_to(_VOLUMES)


def scratch_folder(folder: Path) -> Path:
    """Where this machine keeps files that cannot be in `folder`: a temporary folder for a Volume, else `folder`."""
    if not is_on_volume(folder):
        return folder
    return Path(tempfile.gettempdir()) / f"dmdelta-{sha256(str(folder).encode()).hexdigest()[:16]}"
