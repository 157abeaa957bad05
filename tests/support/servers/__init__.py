"""Real MySQL and MariaDB servers for tests: installed into a private folder, started per test process.

`with running("mysql80", binlog_row_image="MINIMAL") as server:` starts one on a free port; `server.connect()` is an
administrator's PyMySQL connection, `server.user` / `server.password` the account that dmdelta logs in with.
CLI: `python -m tests.support.servers install mysql80`, `python -m tests.support.servers start mysql80 --port 3307`.
Nothing is installed system-wide and no service remains. This package does not depend on dmdelta.
"""

from tests.support.servers.install import InstallError, install
from tests.support.servers.kinds import KINDS, ServerKind
from tests.support.servers.server import Server, StartError, running

__all__ = ["KINDS", "InstallError", "Server", "ServerKind", "StartError", "install", "running"]
