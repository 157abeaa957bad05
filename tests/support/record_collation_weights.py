"""Make `dmdelta/rules/collation_weights.json`: the characters that collations of real servers treat as equal.

`python -m tests.support.record_collation_weights > dmdelta/rules/collation_weights.json` takes minutes.
Hangul and Han characters have unique weights in all collations and are omitted.
"""

import json
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable

from pyspark.sql import SparkSession

from dmdelta.lakehouse.session import SessionSettings, open_session
from tests.support.servers import Server, running

_PLAIN = ((0x3400, 0x9FFF), (0xAC00, 0xDFFF), (0x17000, 0x18CFF))
_IGNORED = "\u00ad"
_OWN = 0xF0000
SPARK = "UNICODE_CI_AI"


def _characters() -> list[int]:
    """Assigned characters that may share a weight."""
    every = (n for n in range(1, 0x20000) if not any(first <= n <= last for first, last in _PLAIN))
    return [n for n in every if n < 0xA0 or unicodedata.category(chr(n)) not in ("Cn", "Co", "Cs")]


def _weights(server: Server, collations: Iterable[str]) -> dict[str, dict[int, str]]:
    database = server.fresh_database("weights")
    found = {}
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE c (n INT PRIMARY KEY, c VARCHAR(1) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)")
        cursor.executemany("INSERT INTO c VALUES (%s, %s)", [(n, chr(n)) for n in _characters()])
        for collation in collations:
            charset = collation.partition("_")[0]
            text = f"CONVERT(c USING {charset})"
            cursor.execute(
                f"SELECT n, HEX(WEIGHT_STRING({text} COLLATE {collation})) FROM c WHERE CONVERT({text} USING utf8mb4) = c"
            )
            found[collation] = {int(number): str(weight) for number, weight in cursor.fetchall()}
    return found


def _by_weight(weights: dict[int, str]) -> dict[str, object]:
    """Map each character to the one whose code is its weight, so that codes give equality and order."""
    moved = {n: int(weight, 16) for n, weight in weights.items() if n <= 0xFFFF and int(weight, 16) != n}
    assert not any(weight == 0x20 for weight in moved.values())
    return {"from": "".join(map(chr, moved)), "to": "".join(map(chr, moved.values()))}


def _ranks(spark: SparkSession, characters: Iterable[int]) -> dict[int, int]:
    spark.createDataFrame([(n, chr(n)) for n in characters], "n INT, c STRING").createOrReplaceTempView("c")
    rows = spark.sql(f"SELECT n, DENSE_RANK() OVER (ORDER BY c COLLATE {SPARK}) AS r FROM c").collect()
    return {row["n"]: row["r"] for row in rows}


def _odd(ours: dict[int, str], theirs: dict[int, int]) -> set[int]:
    """Characters to exclude so that both sides have the same equality."""
    odd: set[int] = set()
    for one, other in ((ours, theirs), (theirs, ours)):
        classes = defaultdict(list)
        for n in one:
            if n not in odd:
                classes[one[n]].append(n)
        for members in classes.values():
            usual = Counter(other[n] for n in members).most_common(1)[0][0]
            odd |= {n for n in members if other[n] != usual}
    return odd


def _patched(weights: dict[int, str], ranks: dict[int, int]) -> dict[str, object]:
    """Map each character that Spark compares differently to one that it compares as MySQL does."""
    odd = sorted(_odd(weights, ranks))
    usual = {weight: n for n, weight in reversed(weights.items()) if n not in set(odd)}
    usual[""] = ord(_IGNORED)
    for number, n in enumerate(odd):
        usual.setdefault(weights[n], _OWN + number)
    like = {chr(n): "".join(chr(m) for m in weights if weights[m] == weights[n]) for n in range(0x20, 0x7F)}
    moved = "".join(chr(usual[weights[n]]) for n in odd)
    return {"from": "".join(map(chr, odd)), "to": moved, "like": like}


def main() -> None:
    with running("mysql80") as server:
        weights = _weights(server, ["utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_0900_ai_ci"])
    for older in ("mysql57", "mariadb"):
        with running(older) as server:
            same = _weights(server, ["utf8mb4_general_ci", "latin1_swedish_ci"])
            for collation, found in same.items():
                assert found == weights[collation], (older, collation)
    spark = open_session("weights", SessionSettings("local[2]", "2g", 2))
    ranks = _ranks(spark, weights["utf8mb4_0900_ai_ci"])
    spark.stop()
    tables = {
        "general_ci": _by_weight(weights["utf8mb4_general_ci"]),
        "latin1_swedish_ci": _by_weight(weights["latin1_swedish_ci"]),
        "utf8mb4_0900_ai_ci": _patched(weights["utf8mb4_0900_ai_ci"], ranks),
    }
    json.dump(tables, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
