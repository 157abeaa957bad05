"""The quickstart as a program: run the task over the shipped binlogs, then look at what landed and at silver.

.venv/bin/python examples/quickstart.py
"""

from pathlib import Path

from pyspark.sql import SparkSession

from dmdelta.cli.progress import print_summary, showing_progress
from dmdelta.config import load_spec
from dmdelta.engine.run import RunOptions, run_task
from dmdelta.engine.task import place_of

SPEC = Path(__file__).parents[1] / "pipelines" / "quickstart.yml"
SAMPLES = {
    ("shop", "orders"): "id, customer_id, status, total",
    ("shop", "events"): "id, kind, payload",
    ("boutique", "customers"): "id, name, email",
}


def main() -> None:
    """Run, then show."""
    spec = load_spec(SPEC)
    with showing_progress() as report:
        summary = run_task(spec, RunOptions(until_caught_up=True), report)
    print_summary(summary)
    spark, lakehouse = SparkSession.builder.getOrCreate(), place_of(spec)

    print(f"\nbronze, {lakehouse.bronze}: row changes by source and table")
    spark.sql(
        f"SELECT source_id, concat_ws('.', schema_name, table_name) AS table, count_if(op = 'insert') AS inserts,"
        f" count_if(op = 'update') AS updates, count_if(op = 'delete') AS deletes, count_if(op = 'ddl') AS ddl"
        f" FROM {lakehouse.bronze} WHERE table_name IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"
    ).show(truncate=False)

    for (schema, table), columns in SAMPLES.items():
        silver = lakehouse.silver(schema, table)
        print(f"silver, {silver}: {spark.table(silver).count()} rows")
        spark.sql(f"SELECT {columns}, _dm_version.seq AS _dm_seq FROM {silver} ORDER BY id LIMIT 5").show(truncate=60)


if __name__ == "__main__":
    main()
