"""`python -m tests.support.servers install NAME… | start NAME [--port N]`."""

import argparse
import sys
import time

from tests.support.servers import KINDS, InstallError, StartError, install, running


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    installing = commands.add_parser("install", help="install servers into the repository's .servers folder")
    installing.add_argument("names", nargs="+", choices=list(KINDS))
    starting = commands.add_parser("start", help="run one server until Ctrl-C")
    starting.add_argument("name", choices=list(KINDS))
    starting.add_argument("--port", type=int)
    arguments = parser.parse_args()
    try:
        if arguments.command == "install":
            for name in arguments.names:
                print(f"{name}: {install(name).root}")
        else:
            _run_until_interrupted(arguments.name, arguments.port)
    except (InstallError, StartError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run_until_interrupted(name: str, port: int | None) -> None:
    with running(name, port=port) as server:
        print(
            f"{server.name} {server.version} on {server.host}:{server.port}, socket {server.socket}, pid {server.pid}"
        )
        print(
            f"administrator: root over the socket; dmdelta: user {server.user}, password {server.password}", flush=True
        )
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print("stopping")


if __name__ == "__main__":
    sys.exit(main())
