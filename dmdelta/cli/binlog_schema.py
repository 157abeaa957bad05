"""`dmdelta binlog-schema`: the structures that are tracked of a source that sends no column names."""

from pathlib import Path
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Source, Spec, table_name
from dmdelta.config import load_spec

Table = Annotated[str, typer.Option("--table", metavar="SCHEMA.TABLE", help="The table, as the source writes it.")]
MaybeTable = Annotated[str | None, typer.Option("--table", metavar="SCHEMA.TABLE", help="This table alone.")]
History = Annotated[bool, typer.Option("--all", help="Every structure that was written down, in the log's order.")]
File = Annotated[
    Path | None, typer.Option("--file", exists=True, dir_okay=False, help="A file that holds the CREATE TABLE.")
]
Statement = Annotated[str | None, typer.Option("--sql", help="The CREATE TABLE, as SHOW CREATE TABLE writes it.")]
HELP = "The structures that are tracked of a source that sends no column names."

app = typer.Typer(no_args_is_help=True, help=HELP, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """The structures that are tracked of a source that sends no column names; changes count from the next start on."""


@app.command("list")
def list_(
    spec: Spec, source: Source = None, table: MaybeTable = None, all_: History = False, json: Json = False
) -> None:
    """What is known where bronze ends, and how it came to be known."""
    task, name = load_spec(spec), table_name(table) if table else None
    from dmdelta.engine.binlog_schema import list_structures

    found = list_structures(task, source, name, everything=all_)
    if json:
        render.print_json(found)
    else:
        render.rows([entry.brief() for entry in found], as_json=False, empty="no structures")


@app.command("update")
def update(
    spec: Spec,
    table: Table,
    file: File = None,
    sql: Statement = None,
    source: Source = None,
    json: Json = False,
) -> None:
    """Take a table for what a CREATE TABLE says, from where bronze ends on; statements behind that are followed."""
    statement = file.read_text() if file is not None and sql is None else sql
    if statement is None or (file is not None and sql is not None):
        raise typer.BadParameter("give the CREATE TABLE by --file or by --sql")
    task, name = load_spec(spec), table_name(table)
    from dmdelta.engine.binlog_schema import update_structure

    done = update_structure(task, source, name, statement)
    render.rows([done if json else done.brief()], as_json=json, empty="")


@app.command("delete")
def delete(spec: Spec, table: Table, source: Source = None, json: Json = False) -> None:
    """Forget a table's structure: it is taken from information_schema again."""
    task, name = load_spec(spec), table_name(table)
    from dmdelta.engine.binlog_schema import delete_structure

    done = delete_structure(task, source, name)
    render.rows([done if json else done.brief()], as_json=json, empty="")
