"""Installs a server once below the repository, with a template of its data folder."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.fetch import InstallError, fetch_debian, fetch_maven, unpack_jar
from tests.support.servers.kinds import KINDS, ServerKind

__all__ = ["InstallError", "Installation", "install", "locked", "servers_folder"]

LOCATION = "DMDELTA_SERVERS"
_RECIPE = "2"
_SYSTEM_TABLES = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
    "maria_add_gis_sp_bootstrap.sql",
)


@dataclass(frozen=True, slots=True)
class Installation:
    """A server's program, and `template`, an initialised data folder that is never started."""

    kind: ServerKind
    root: Path

    @property
    def template(self) -> Path:
        return self.root / "template"

    @property
    def environment(self) -> dict[str, str]:
        """The program's environment: with its own libraries, without the user's settings."""
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR", "LANG"}}
        return kept if self.kind.debian.closure else {**kept, "LD_LIBRARY_PATH": self._libraries()}

    def command(self, datadir: Path) -> list[str]:
        """The program with the options that every use of it needs."""
        program = str(self.root / self.kind.binary)
        if self.kind.debian.closure:
            # The packages include their own C library, whose loader runs them on any distribution.
            loader = next(self.root.glob("**/ld-linux-x86-64.so.2"))
            command = [str(loader), "--library-path", self._libraries(), program]
        else:
            command = [program]
        base = self.root / "usr" if self.kind.binary.startswith("usr/") else self.root
        command += ["--no-defaults", f"--basedir={base}", f"--datadir={datadir}"]
        command += [f"--lc-messages-dir={self.root / self.kind.share}"]
        if self.kind.plugins is not None:
            command.append(f"--plugin-dir={self.root / self.kind.plugins}")
        return [*command, "--user=root"] if os.geteuid() == 0 else command

    def _libraries(self) -> str:
        folders = (
            "lib/private",
            "lib",
            "usr/lib",
            "usr/lib/mysql/private",
            "lib/x86_64-linux-gnu",
            "usr/lib/x86_64-linux-gnu",
        )
        return ":".join(str(self.root / folder) for folder in folders if (self.root / folder).is_dir())


def servers_folder() -> Path:
    """`$DMDELTA_SERVERS`, or `.servers` at the repository's root."""
    given = os.environ.get(LOCATION)
    return Path(given) if given else Path(__file__).resolve().parents[3] / ".servers"


def install(name: str) -> Installation:
    """The installation of the server `name`, made at the first call. Safe with concurrent processes.

    Raises:
        InstallError: an unknown name, or a failed installation.
    """
    if name not in KINDS:
        raise InstallError(f"no server {name!r}: there are {', '.join(KINDS)}")
    kind = KINDS[name]
    folder = servers_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / f"{name}.lock"):
        installation = Installation(kind, folder / name)
        marker = installation.root / "recipe"
        if not marker.exists() or marker.read_text() != _RECIPE:
            shutil.rmtree(installation.root, ignore_errors=True)
            _build(installation, folder)
            marker.write_text(_RECIPE)
        return installation


def _build(installation: Installation, folder: Path) -> None:
    kind, root = installation.kind, installation.root
    root.mkdir()
    with tempfile.TemporaryDirectory(prefix=f".{kind.name}-", dir=folder) as scratch:
        if kind.maven is not None:
            unpack_jar(fetch_maven(kind.maven, Path(scratch)), kind.maven.archive, root)
        fetch_debian(kind.debian, Path(scratch), root)
    if kind.flavor == "mariadb":
        _bootstrap_mariadb(installation)
    else:
        _initialise([*installation.command(installation.template), "--initialize-insecure"], installation)
    for leftover in ("auto.cnf", "binlog.index", "ib_buffer_pool", "ibtmp1"):
        (installation.template / leftover).unlink(missing_ok=True)


def _bootstrap_mariadb(installation: Installation) -> None:
    """The steps of mariadb-install-db, without its search for system programs."""
    installation.template.mkdir()
    share = installation.root / installation.kind.share
    script = "create database if not exists mysql;\nuse mysql;\nSET @auth_root_socket=NULL;\n"
    script += "".join((share / name).read_text() for name in _SYSTEM_TABLES)
    command = [
        *installation.command(installation.template),
        "--bootstrap",
        "--log-warnings=0",
        "--max-allowed-packet=8M",
    ]
    _initialise([*command, "--enforce-storage-engine=", "--net-buffer-length=16K"], installation, script)


def _initialise(command: list[str], installation: Installation, script: str = "") -> None:
    redo = {name: value for name, value in installation.kind.options.items() if name.startswith("innodb_")}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in redo.items()]
    done = subprocess.run(
        [*command, *options, "--innodb-flush-method=nosync"],
        input=script,
        capture_output=True,
        text=True,
        check=False,
        env=installation.environment,
        timeout=300,
    )
    if done.returncode != 0:
        raise InstallError(
            f"{installation.kind.name}: initialising the data folder failed (exit {done.returncode}): {done.stderr[-800:]}"
        )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process at a time is in the block, among those that use the same file."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
