"""References in a spec: `${NAME}` to the environment, `${file:PATH}` to a file, `{{secrets/<scope>/<key>}}` to a
Databricks workspace.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dmdelta.errors import ConfigError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FILE = re.compile(r"\$\{file:([^{}]+)\}")
_SECRET = re.compile(r"\{\{secrets/([^/{}]+)/([^/{}]+)\}\}")
Secrets = Callable[[str, str], str]
"""Returns a secret by its scope and key."""


def variable_of(text: str) -> str | None:
    """The environment variable that `text` refers to; None if it is not such a reference."""
    variable = _VARIABLE.fullmatch(text)
    return variable[1] if variable else None


def read_secret(scope: str, key: str) -> str:
    """A secret of the Databricks workspace that this process runs in, or that the SDK is configured for.

    Raises:
        ConfigError: the SDK is not installed, or the secret cannot be read.
    """
    try:
        # The import takes a second and is only installed where it is needed.
        from databricks.sdk import WorkspaceClient  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError("secrets need databricks-sdk: pip install 'dmdelta[databricks]'") from error
    try:
        # dbutils instead of the REST API: inside a job it needs no token of its own.
        return str(WorkspaceClient().dbutils.secrets.get(scope, key))
    except Exception as error:
        raise ConfigError(f"the secret {scope}/{key} cannot be read: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class References:
    """Resolves a spec's references; relative paths are relative to `folder`."""

    env: Mapping[str, str]
    secret: Secrets
    folder: Path = Path()

    def value_of(self, text: str) -> str:
        """The value that `text` refers to if it is exactly one reference, else `text`.

        Raises:
            ConfigError: the reference cannot be resolved.
        """
        variable, secret = variable_of(text), _SECRET.fullmatch(text)
        file = _FILE.fullmatch(text)
        if file is not None:
            return _content(self.folder / file[1])
        if secret is not None:
            return self.secret(secret[1], secret[2])
        if variable is None:
            return text
        if variable not in self.env:
            raise ConfigError(f"the environment variable {variable} is not set")
        return self.env[variable]


def _content(path: Path) -> str:
    """Without the trailing newline that editors and `echo` write. Bytes that are not UTF-8 are kept, as in the
    environment.
    """
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape").rstrip("\r\n")
    except OSError as error:
        raise ConfigError(f"the file {path} cannot be read: {error.strerror}") from error
