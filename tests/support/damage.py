"""Damage to the silver table `big` (`tests.support.loadable`), one row per kind, for tests of its detection."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

DAMAGE = {
    "a whole number": "UPDATE {big} SET k = k + 1 WHERE id = {id}",
    "an unsigned number": "UPDATE {big} SET u = 18446744073709551614 WHERE id = {id}",
    "a float": "UPDATE {big} SET f = CAST(1.2500001 AS FLOAT) WHERE id = {id}",
    "a double": "UPDATE {big} SET d = CAST('-2.5000000000000004e200' AS DOUBLE) WHERE id = {id}",
    "a truncated decimal": "UPDATE {big} SET p = -123456789.120 WHERE id = {id}",
    "a text": "UPDATE {big} SET t = 'grün 🌲' WHERE id = {id}",
    "a wrong charset": "UPDATE {big} SET l = 'Ã¿es' WHERE id = {id}",
    "bytes": "UPDATE {big} SET b = X'00FE' WHERE id = {id}",
    "swapped columns": "UPDATE {big} SET t = w, w = t WHERE id = {id}",
    "a shifted time zone": "UPDATE {big} SET stamp = stamp + INTERVAL 1 HOUR WHERE id = {id}",
    "a microsecond": "UPDATE {big} SET at = at + INTERVAL 1 MICROSECOND WHERE id = {id}",
    "a day": "UPDATE {big} SET day = day + 1 WHERE id = {id}",
    "a year": "UPDATE {big} SET y = 2025 WHERE id = {id}",
    "an enum": "UPDATE {big} SET e = 'on' WHERE id = {id}",
    "a document": "UPDATE {big} SET j = {document} WHERE id = {id}",
    "a NULL": "UPDATE {big} SET t = NULL WHERE id = {id}",
    "an empty text for NULL": "UPDATE {big} SET t = '' WHERE id = 3",
    "a lost row": "DELETE FROM {big} WHERE id = {id}",
    "a doubled row": "INSERT INTO {big} SELECT * FROM {big} WHERE id = {id}",
    "a row of nobody": "INSERT INTO {big} SELECT -{id} AS id, * EXCEPT (id) FROM {big} WHERE id = {id}",
}
"""Statements on the silver table by kind of damage; each damages one row."""
KINDS = {"a lost row": "missing", "a doubled row": "extra", "a row of nobody": "extra"}


def rows_to_damage(spark: SparkSession, big: str) -> dict[str, int]:
    """The ids of the rows to damage, by kind of damage; `big` is the silver table in SQL."""
    rows = spark.sql(f"SELECT id FROM {big} WHERE t IS NOT NULL AND y = 2026 ORDER BY id").collect()
    return dict(zip(DAMAGE, [row.id for row in rows], strict=False)) | {"an empty text for NULL": 3}


def damage(spark: SparkSession, big: str, ids: Mapping[str, int]) -> dict[str, str]:
    """Damage the rows; returns how each then differs, by the text of its key."""
    document = "'{\"a\": [1, 2]}'"
    if dict(spark.table(big).dtypes)["j"] == "variant":  # MariaDB's JSON is text
        document = f"parse_json({document})"
    for what, statement in DAMAGE.items():
        spark.sql(statement.format(big=big, id=ids[what], document=document))
    return {key_of(what, ids): KINDS.get(what, "different") for what in DAMAGE}


def key_of(what: str, ids: Mapping[str, int]) -> str:
    """The text of a damaged row's key."""
    return f"-{ids[what]}" if what == "a row of nobody" else str(ids[what])
