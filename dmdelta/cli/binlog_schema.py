"""`dmdelta binlog-schema`: the tracked structures of a source whose log has no column names."""

from pathlib import Path
from typing import Annotated

import typer

from dmdelta.cli import render
from dmdelta.cli.options import Json, Source, Spec, table_name
from dmdelta.config import load_spec

Table = Annotated[str, typer.Option("--table", metavar="SCHEMA.TABLE", help="The table, with its name at the source.")]
MaybeTable = Annotated[str | None, typer.Option("--table", metavar="SCHEMA.TABLE", help="Only this table.")]
History = Annotated[bool, typer.Option("--all", help="Every recorded structure, in log order.")]
File = Annotated[Path | None, typer.Option("--file", exists=True, dir_okay=False, help="A file with the CREATE TABLE.")]
Statement = Annotated[str | None, typer.Option("--sql", help="The CREATE TABLE, in the form of SHOW CREATE TABLE.")]
HELP = "The tracked structures of a source whose log has no column names."

app = typer.Typer(no_args_is_help=True, help=HELP, rich_markup_mode=None)


@app.callback()
def group() -> None:
    """The tracked structures of a source whose log has no column names; changes take effect at the next start."""


@app.command("list")
def list_(
    spec: Spec, source: Source = None, table: MaybeTable = None, all_: History = False, json: Json = False
) -> None:
    """List the structures at the end of bronze, and where each comes from."""
    task, name = load_spec(spec), table_name(table) if table else None
    from dmdelta.engine.ingest.schema_admin import list_structures

    structures = list_structures(task, source, name, everything=all_)
    if json:
        render.print_json(structures)
    else:
        render.rows([entry.brief() for entry in structures], as_json=False, empty="no structures")


@app.command("update")
def update(
    spec: Spec,
    table: Table,
    file: File = None,
    sql: Statement = None,
    source: Source = None,
    json: Json = False,
) -> None:
    """Set a table's structure to a CREATE TABLE, from the end of bronze on; later statements are applied to it."""
    statement = file.read_text() if file is not None and sql is None else sql
    if statement is None or (file is not None and sql is not None):
        raise typer.BadParameter("give the CREATE TABLE with --file or with --sql")
    task, name = load_spec(spec), table_name(table)
    from dmdelta.engine.ingest.schema_admin import update_structure

    updated = update_structure(task, source, name, statement)
    render.rows([updated if json else updated.brief()], as_json=json, empty="")


@app.command("delete")
def delete(spec: Spec, table: Table, source: Source = None, json: Json = False) -> None:
    """Delete a table's structure: it is read from information_schema again."""
    task, name = load_spec(spec), table_name(table)
    from dmdelta.engine.ingest.schema_admin import delete_structure

    deleted = delete_structure(task, source, name)
    render.rows([deleted if json else deleted.brief()], as_json=json, empty="")
