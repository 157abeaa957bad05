"""`dmdelta init`: a spec to start from."""

from pathlib import Path
from typing import Annotated

import typer

from dmdelta.errors import ConfigError

TEMPLATE = """\
# A task that follows a MySQL or MariaDB server. Every key: docs/spec.md.
# `dmdelta check` reports whether it can run, `dmdelta run` runs it.
name: shop
# task-mode: all # load the existing rows first; by default the task only follows the log

sources:
  - source-id: shop-primary
    host: 127.0.0.1
    port: 3306
    user: dmdelta
    password: ${MYSQL_PASSWORD} # taken from the environment
    # relay:
    #   dir: /fast/relay # raw binlog until it has landed; `relay` below the lakehouse's root by default
    # security:
    #   ssl-ca: ca.pem
    # meta: # the position of the first start; the oldest binlog by default
    #   binlog-name: binlog.000042
    #   binlog-pos: 4

block-allow-list: # omit it to select every table
  do-dbs: [shop]
  # ignore-tables:
  #   - db-name: shop
  #     tbl-name: "tmp_*" # a wildcard; "~^tmp_[0-9]+$" is a regular expression

# syncer:
#   checkpoint-flush-interval: 30s
#   safe-mode: false

lakehouse:
  root: lakehouse # a folder, relative to this file, or a URI; `catalog: main` for a catalog instead

# quality: # contracts of silver's tables, one file a table: docs/quality.md
#   schemas: schemas # schemas/shop/orders.yml is the contract of shop.orders
"""


def init(path: Annotated[Path, typer.Argument(metavar="PATH", help="The file to write.")] = Path("task.yml")) -> None:
    """Write a commented spec to start from."""
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(TEMPLATE)
    except FileExistsError as error:
        raise ConfigError(f"{path} exists", hint="name another file: dmdelta init PATH") from error
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}", hint="name a file in an existing folder") from error
    typer.echo(f"wrote {path}; fill in the source, then: dmdelta check {path}")
