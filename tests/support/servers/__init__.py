"""Real MySQL and MariaDB servers for the tests: installed into a private folder, started per test process.

`with running("mysql80", binlog_row_image="MINIMAL") as server:` starts one on a free port; `server.connect()` is an
administrator's PyMySQL connection, `server.user` / `server.password` the account that the product logs in with.
By hand: `python -m tests.support.servers install mysql80`, `python -m tests.support.servers start mysql80 --port 3307`.
Nothing is installed system-wide and no service is left behind. Knows nothing of dmdelta.
"""

from tests.support.servers.install import InstallError, install
from tests.support.servers.kinds import KINDS, ServerKind
from tests.support.servers.server import Server, StartError, running

__all__ = ["KINDS", "InstallError", "Server", "ServerKind", "StartError", "install", "running"]
