"""Which of Spark and delta-rs may write a table."""

import threading

from dmdelta.lakehouse.access.table_writers import delta_rs_writes, spark_writes


def test_delta_rs_writes_only_what_spark_does_not():
    with spark_writes("bronze"), spark_writes("bronze"):
        with delta_rs_writes("bronze") as free:
            assert not free
        with delta_rs_writes("other") as free:
            assert free
    with delta_rs_writes("bronze") as free:
        assert free


def test_delta_rs_may_have_several_writers_of_a_table():
    """Small batches land while bronze is compacted."""
    with delta_rs_writes("bronze") as first:
        with delta_rs_writes("bronze") as second:
            assert first
            assert second
        thread = threading.Thread(target=write_with_spark)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive(), "one of them still writes"
    thread.join()


def test_a_failed_write_ends():
    for writes in (spark_writes, delta_rs_writes):
        try:
            with writes("bronze"):
                raise RuntimeError
        except RuntimeError:
            pass
    with delta_rs_writes("bronze") as free:
        assert free


def test_spark_waits_for_delta_rs():
    done = list[str]()

    def write() -> None:
        with spark_writes("bronze"):
            done.append("Spark")

    with delta_rs_writes("bronze"):
        thread = threading.Thread(target=write)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
        done.append("delta-rs")
    thread.join()
    assert done == ["delta-rs", "Spark"]


def write_with_spark() -> None:
    with spark_writes("bronze"):
        pass
