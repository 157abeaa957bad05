"""The entry point: commands in, exit code out."""

import sys
from collections.abc import Sequence

import typer

from dmdelta import __version__
from dmdelta.cli import binlog, binlog_schema, checkpoint, quality, relay, shard_ddl_lock, validate
from dmdelta.cli.check import check
from dmdelta.cli.control import pause, resume, stop, update
from dmdelta.cli.events import events
from dmdelta.cli.import_dm import import_dm
from dmdelta.cli.init import init
from dmdelta.cli.maintain import maintain
from dmdelta.cli.render import print_error
from dmdelta.cli.replay import replay
from dmdelta.cli.report import report
from dmdelta.cli.run import run
from dmdelta.cli.snapshot import snapshot
from dmdelta.cli.sql import sql
from dmdelta.cli.status import status
from dmdelta.cli.verify import verify
from dmdelta.errors import EXIT_RETRIES_SPENT, DmdeltaError, Retryable, StageFailed, as_ours

app = typer.Typer(
    name="dmdelta",
    help="MySQL and MariaDB binlogs to Delta Lake: exactly once, parallel, replayable, checked.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run)
app.command("check")(check)
app.command("pause")(pause)
app.command("resume")(resume)
app.command("stop")(stop)
app.command("snapshot")(snapshot)
app.command("replay")(replay)
app.add_typer(validate.app, name="validate")
app.command("verify")(verify)
app.command("update")(update)
app.command("status")(status)
app.command("events")(events)
app.command("sql")(sql)
app.add_typer(quality.app, name="quality")
app.command("report")(report)
app.add_typer(binlog.app, name="binlog")
app.add_typer(binlog_schema.app, name="binlog-schema")
app.add_typer(shard_ddl_lock.app, name="shard-ddl-lock")
app.add_typer(checkpoint.app, name="checkpoint")
app.add_typer(relay.app, name="relay")
app.command("maintain")(maintain)
app.command("init")(init)
app.command("import-dm")(import_dm)


def _version(requested: bool) -> None:
    if requested:
        sys.stdout.write(f"dmdelta {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
) -> None:
    """Options before a command; `execute` reads --debug itself, because it needs it when a command has failed."""


def execute(arguments: Sequence[str]) -> int:
    """Run one command line.

    Returns:
        The exit code: 0, 1 for findings, that of the error's kind, 75 when retries are exhausted, 130 after Ctrl-C,
        143 after SIGTERM and 129 after SIGHUP if a command then excluded the task.
    """
    try:
        app(args=list(arguments))
    except SystemExit as ended:  # typer always ends this way
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except DmdeltaError as error:
        print_error(error, debug="--debug" in arguments)
        return EXIT_RETRIES_SPENT if isinstance(error, Retryable) else error.exit_code
    except OSError as error:  # a full disk, a missing permission: not an error of dmdelta
        print_error(as_ours(error, "dmdelta " + " ".join(arguments[:1])), debug="--debug" in arguments)
        return StageFailed.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def main() -> None:
    """The console script. Databricks treats any SystemExit of a task as a failure, so 0 returns normally."""
    code = execute(sys.argv[1:])
    if code != 0:
        raise SystemExit(code)
