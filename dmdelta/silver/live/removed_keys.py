"""Removes the rows with certain integer keys from a query. Only the keys are sent to Spark, and no plan shows them."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's convention

from dmdelta.changelog.integer_keys import Keys
from dmdelta.model.spark_sql import quote

_WORD_BITS = 64
_HELD = pa.struct([("base", pa.int64()), ("words", pa.list_(pa.int64()))])
_REMOVED, _ROWS = "_dm_removed", "_dm_rows"


def without_keys(rows: DataFrame, name: str, keys: Keys) -> DataFrame:
    """The rows whose key is not among some keys.

    Dense keys are a bitmap that each row is looked up in: a join, which first has to distribute them, takes longer.

    Args:
        name: the column of the key, an integer that is never null.
        keys: distinct int64 in ascending order.
    """
    if not len(keys):
        return rows
    first, last = int(keys[0]), int(keys[-1])
    if (last - first) // _WORD_BITS < len(keys):
        return rows.where(~_is_among(rows.sparkSession, F.expr(quote(name)), keys))
    removed = F.broadcast(rows.sparkSession.createDataFrame(pa.table({"k0": keys}))).alias(_REMOVED)
    return rows.alias(_ROWS).join(removed, F.expr(f"{_ROWS}.{quote(name)} = {_REMOVED}.k0"), "left_anti")


def _is_among(spark: SparkSession, value: Column, keys: Keys) -> Column:
    """Whether a key is among others.

    A subquery holds them: the plan of a query, which users may log, shows literals; and the numbers among these are a
    part of the generated code, which would be compiled again for each read.
    """
    base, words = bitmap(keys)
    held = spark.createDataFrame(pa.table({"held": pa.array([{"base": base, "words": words}], _HELD)})).scalar()
    offset = F.try_subtract(value.cast("bigint"), held["base"])  # NULL if it overflows
    word = F.get(held["words"], F.shiftright(offset, 6).try_cast("int"))  # NULL outside
    bit = F.getbit(word, offset.bitwiseAND(F.lit(_WORD_BITS - 1)).cast("int"))
    return F.coalesce(bit == 1, F.lit(False))


def bitmap(keys: Keys) -> tuple[int, npt.NDArray[np.int64]]:
    """A base and words of 64 bits: bit n of word m is set if base + 64 m + n is one of the keys.

    Args:
        keys: distinct int64 in ascending order, at least one.
    """
    base = int(keys[0]) // _WORD_BITS * _WORD_BITS
    offsets = keys - base
    words = np.zeros(int(offsets[-1]) // _WORD_BITS + 1, np.uint64)
    np.bitwise_or.at(words, offsets // _WORD_BITS, np.uint64(1) << (offsets % _WORD_BITS).astype(np.uint64))
    return base, words.view(np.int64)
