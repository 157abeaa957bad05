"""A session in which the tables of a task have names: silver, live reads, bronze, dm_meta and quarantines."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from dmdelta.changelog.ranges import before, of_source
from dmdelta.config import TaskSpec
from dmdelta.engine.live.references import ReadStatement, read_statement
from dmdelta.engine.live.tables import LiveTables
from dmdelta.errors import ConfigError, LakehouseError
from dmdelta.lakehouse.access.local_root import local_folder
from dmdelta.lakehouse.jvm.cancellation import cancel_jobs
from dmdelta.lakehouse.session import open_session, query_session
from dmdelta.lakehouse.tables import table_state
from dmdelta.model.schema import TableName
from dmdelta.model.spark_sql import quote
from dmdelta.silver.apply.quarantine import Quarantine

LIVE, QUARANTINE = "_live", "_quarantine"
"""Suffixes of a table's name in silver."""
_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*", re.IGNORECASE)
BRONZE, METADATA = "bronze.events", "dm_meta"


@dataclass(slots=True)
class SqlSession:
    """Reads the tables of one task.

    Attributes:
        at: the position of all tables (`LiveTables.positions`); None: silver is as it is, live reads are at the end of
            bronze.
    """

    tables: LiveTables
    at: str | None = None
    _silver: dict[str, TableName] = field(default_factory=dict)
    _views: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, spec: TaskSpec, at: str | None = None) -> "SqlSession":
        """Start Spark and open the tables of a task.

        Raises:
            DmdeltaError: as `LiveTables.of`; the lakehouse is unavailable.
        """
        return cls(LiveTables.of(query_session(open_session(f"dmdelta {spec.name} sql")), spec), at)

    def names(self) -> list[str]:
        """The names that a query can use, sorted; those of dm_meta only under a root on this machine.

        Raises:
            LakehouseError: bronze or dm_meta cannot be read.
        """
        self._look_up()
        listed = [".".join(name) for name in self._silver.values()]
        metadata = self._metadata()
        quarantines = [f"{'.'.join(name)}{QUARANTINE}" for name in self._silver.values() if self._has_quarantine(name)]
        also = [*(f"{name}{LIVE}" for name in listed), *quarantines, *(f"{METADATA}.{name}" for name in metadata)]
        return sorted([*listed, BRONZE, *also])

    def query(self, text: str) -> DataFrame:
        """The result of a statement that only reads. All live reads of a statement are at one position.

        SHOW TABLES has the names of this session.

        Raises:
            ConfigError: the statement is invalid or may write.
            NotReadable: the rows of a table at the position are unknown.
            LakehouseError: a table cannot be read.
        """
        statement = read_statement(text)
        if _SHOW_TABLES.fullmatch(statement.text):
            return self._spark.createDataFrame([(name,) for name in self.names()], "name STRING")
        places = self._places(statement)
        planned = statement.with_tables(places.get)
        with explained():
            if statement.is_query:
                self._spark.sql(f"SELECT * FROM (\n{planned}\n)")  # only a query is valid here: nothing is written
            return self._spark.sql(planned)

    def cancel(self) -> None:
        """Cancel the statement that is running."""
        cancel_jobs(self._spark)

    @property
    def _spark(self) -> SparkSession:
        return self.tables.task.spark

    def _places(self, statement: ReadStatement) -> dict[str, str]:
        """The tables (SQL) by the names that a statement uses for them."""
        named = list(dict.fromkeys(reference.name for reference in statement.references if reference.is_table))
        self._drop_views()
        places, live = dict[str, str](), dict[str, str]()
        for name in named:
            silver = self._live_name(name)
            if silver is not None:
                live[name] = ".".join(silver)
            elif (place := self._place(name)) is not None:
                places[name] = place
        if live:
            read = self.tables.read(list(dict.fromkeys(live.values())), self.at)
            views = {name: self._view(rows) for name, rows in read.items()}
            places |= {name: views[silver] for name, silver in live.items()}
        return places

    def _live_name(self, name: str) -> TableName | None:
        """The table in silver that a name reads live; None if the name is another one."""
        silver = self._find(name)
        if silver is not None:
            return silver if self.at is not None else None
        return self._find(name[: -len(LIVE)]) if name.lower().endswith(LIVE) else None

    def _place(self, name: str) -> str | None:
        """The table (SQL) of a name that needs no live read; None if the task has no such table."""
        lakehouse, task = self.tables.task.lakehouse, self.tables.task.spec.name
        schema, _, table = name.partition(".")
        silver = self._find(name)
        if silver is not None:
            return lakehouse.silver(*silver)
        if name.lower() == BRONZE:
            return self._bronze()
        if schema.lower() == METADATA:
            short = lakehouse.metadata(f"{task}_{table}")
            return short if table_state(self._spark, short) is not None else lakehouse.metadata(table)
        quarantined = self._find(name[: -len(QUARANTINE)]) if name.lower().endswith(QUARANTINE) else None
        return self._quarantine(quarantined) if quarantined is not None else None

    def _find(self, name: str) -> TableName | None:
        if name.lower() not in self._silver and "." in name and not self._is_ours(name):
            self._look_up()
        return self._silver.get(name.lower())

    def _look_up(self) -> None:
        self._silver = {f"{schema}.{table}".lower(): (schema, table) for schema, table in self.tables.names()}

    def _is_ours(self, name: str) -> bool:
        """Whether a name is known without a look at the tables of the sources."""
        lower = name.lower()
        suffixed = any(lower.endswith(end) and lower[: -len(end)] in self._silver for end in (LIVE, QUARANTINE))
        return suffixed or lower == BRONZE or lower.startswith((f"{METADATA}.", "delta."))

    def _bronze(self) -> str:
        bronze = self.tables.task.lakehouse.bronze
        if self.at is None:
            return bronze
        ends = self.tables.positions(self.at).items()
        landed = " OR ".join(f"({of_source(source_id)} AND {before(end)})" for source_id, end in ends)
        return self._view(self._spark.sql(f"SELECT * FROM {bronze} WHERE {landed}"))

    def _quarantine(self, silver: TableName) -> str:
        task = self.tables.task
        return Quarantine.place_of(task.lakehouse, task.spec.name, silver)

    def _has_quarantine(self, silver: TableName) -> bool:
        folder = local_folder(self._quarantine(silver))
        return folder is not None and folder.is_dir()

    def _metadata(self) -> Sequence[str]:
        folder = local_folder(self.tables.task.lakehouse.metadata("any"))
        is_local = folder is not None and folder.parent.is_dir()
        return sorted(place.name for place in folder.parent.iterdir() if place.is_dir()) if folder and is_local else ()

    def _view(self, rows: DataFrame) -> str:
        name = f"dmdelta_sql_{uuid4().hex}"
        rows.createOrReplaceTempView(name)
        self._views.append(name)
        return quote(name)

    def _drop_views(self) -> None:
        for name in self._views:
            self._spark.catalog.dropTempView(name)
        self._views.clear()


@contextmanager
def explained() -> Iterator[None]:
    """Raise a dmdelta error in place of one of Spark about a user's statement.

    Spark's text is only shown if the analysis failed: an error of the execution may quote row values.
    """
    try:
        yield
    except AnalysisException as error:
        message = str(error).partition(";\n")[0].partition("\n== SQL")[0].strip()
        raise ConfigError(
            f"the statement is invalid: {message}", hint="SHOW TABLES lists the names of tables"
        ) from error
    except PySparkException as error:
        condition = error.getCondition() or type(error).__name__
        raise LakehouseError(f"the statement failed: {condition}", hint="see Spark's documentation of it") from error
