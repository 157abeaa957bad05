"""`quality`: rows are checked before and after they reach silver; failures are reported, quarantined, or a stop."""

import json

import pytest
import yaml

from dmdelta.cli.main import execute
from dmdelta.failpoint import CrashPoint
from dmdelta.lakehouse.layout import Lakehouse
from tests.support.task import Task

EMAIL = {
    "type": "expect_column_values_to_match_regex",
    "kwargs": {"column": "email", "regex": "^[^@]+@[^@]+$"},
    "on-failure": "quarantine",
}
AMOUNT = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}


class Checked:
    """A task with a suite for its table `orders`."""

    def __init__(self, folder, server, *expectations, mode="incremental", **contract):
        self.task = Task(folder, server, server.fresh_database("quality"), mode=mode)
        self.task.settings["quality"] = {"schemas": str(folder / "schemas")}
        self.suite = folder / "schemas" / self.task.database / "orders.yml"
        self.suite.parent.mkdir(parents=True)
        self.expect(*expectations, **contract)
        self.do("CREATE TABLE orders (id INT PRIMARY KEY, email VARCHAR(40), amount INT)")

    def expect(self, *expectations, **contract):
        self.suite.write_text(yaml.safe_dump({**contract, "expectations": list(expectations)}))

    def do(self, *statements):
        self.task.server.execute(*statements, database=self.task.database)

    @property
    def silver(self):
        return Lakehouse(root=str(self.task.root)).silver(self.task.database, "orders")

    @property
    def apart(self):
        return Lakehouse(root=str(self.task.root)).metadata(f"t_quarantine__{self.task.database}__orders")

    def command(self, capsys, *arguments, code=0):
        capsys.readouterr()
        with self.task.environment():
            ended = execute([*arguments, "--json"])
        out, err = capsys.readouterr()
        assert ended == code, (out + err)[-4000:]
        return json.loads(out) if out else err

    def assert_parted(self, spark, *apart):
        """The source's rows are in silver, except the quarantined ones."""
        source = {
            row[0]: row[1:] for row in self.task.server.query("SELECT * FROM orders", database=self.task.database)
        }
        silver = spark.sql(f"SELECT id, email, amount FROM {self.silver}").collect()
        assert {row.id: (row.email, row.amount) for row in silver} == {
            key: row for key, row in source.items() if key not in apart
        }
        assert len(silver) == len(source) - len(apart)
        kept = spark.sql(f"SELECT image:id::INT AS id, image:email::STRING AS email, * FROM {self.apart}").collect()
        assert sorted(row.id for row in kept) == sorted(apart)
        for row in kept:
            assert row.email == source[row.id][0]
            assert row.reasons == ["expect_column_values_to_match_regex(column=email, regex=^[^@]+@[^@]+$)"]


def test_rows_that_fail_are_quarantined_until_they_pass(mysql80, spark, tmp_path, capsys):
    """A row is in silver or in quarantine by its current values, through every kind of change, kills and releases."""
    shop = Checked(tmp_path, mysql80, EMAIL, AMOUNT, key=["id"], columns={"id": {"type": "int", "nullable": False}})
    task = shop.task
    shop.do("INSERT INTO orders VALUES (1, 'a@b', 1), (2, 'broken', 2), (3, NULL, 3), (4, 'c@d', -4)")
    task.catch_up()
    shop.assert_parted(spark, 2)
    results = spark.table(Lakehouse(root=str(task.root)).metadata("t_quality")).collect()
    assert {(row.expectation[:35], row.on_failure, row.unexpected, row.success) for row in results} == {
        ("expect_column_values_to_match_regex", "quarantine", 1, False),
        ("expect_column_values_to_be_between(", "warn", 1, False),
    }
    # Silver's row begins to fail, the failing one is fixed, another one's key changes, another one is deleted.
    shop.do("UPDATE orders SET email = 'no more' WHERE id = 1", "UPDATE orders SET email = 'x@y' WHERE id = 2")
    shop.do(
        "INSERT INTO orders VALUES (5, 'bad', 5), (6, 'bad', 6), (7, 'e@f', 7)", "UPDATE orders SET id = 8 WHERE id = 5"
    )
    shop.do("DELETE FROM orders WHERE id = 4")
    task.arm(CrashPoint.SILVER_BEFORE_COMMIT)
    with task.process("--until-caught-up") as process:
        assert process.wait(300) < 0
    task.catch_up()
    shop.assert_parted(spark, 1, 6, 8)
    shop.do("DELETE FROM orders WHERE id = 6", "UPDATE orders SET amount = 88 WHERE id = 8")
    task.catch_up()
    shop.assert_parted(spark, 1, 8)

    # Replays and comparisons take the quarantined rows into account.
    line = shop.command(capsys, "validate", str(task.spec))[0]
    assert (line["rows"], line["silver_rows"], line["missing"], line["extra"]) == (5, 5, 0, 0)
    (done,) = shop.command(capsys, "replay", str(task.spec), f"--table={task.database}.orders", "--rebuild")
    assert done["rows"] > 0
    shop.assert_parted(spark, 1, 8)

    (kept,) = shop.command(capsys, "quality", "release", str(task.spec))
    assert (kept["released"], kept["failing"]) == (0, 2)
    shop.expect({**EMAIL, "kwargs": {"column": "email", "regex": "."}}, AMOUNT)
    (sent,) = shop.command(capsys, "quality", "release", str(task.spec))
    assert (sent["released"], sent["failing"]) == (2, 0)
    shop.assert_parted(spark)
    assert shop.command(capsys, "quality", "release", str(task.spec)) == []
    shop.do("UPDATE orders SET email = '' WHERE id IN (1, 8)")
    task.catch_up()
    assert spark.table(shop.silver).where("id IN (1, 8)").isEmpty()
    (gone,) = shop.command(capsys, "quality", "release", str(task.spec), "--discard")
    assert gone["discarded"] == 2
    shop.do("TRUNCATE TABLE orders", "INSERT INTO orders VALUES (9, '', 9)")
    task.catch_up()
    assert [row.image for row in spark.table(shop.apart).selectExpr("image:id::INT AS image").collect()] == [9]


def test_a_statement_empties_the_quarantine_after_the_suites_were_removed(mysql80, spark, tmp_path):
    """A task without suites still applies its log to the quarantine that an earlier run has written."""
    shop = Checked(tmp_path, mysql80, EMAIL)
    shop.do("INSERT INTO orders VALUES (1, 'a@b', 1), (2, 'broken', 2)")
    shop.task.catch_up()
    shop.assert_parted(spark, 2)
    del shop.task.settings["quality"]
    shop.do("TRUNCATE TABLE orders", "INSERT INTO orders VALUES (3, 'broken', 3)")
    shop.task.catch_up()
    shop.assert_parted(spark)


@pytest.mark.long
def test_one_bad_row_in_a_hundred_thousand(mysql80, spark, tmp_path, capsys):
    """It alone is quarantined, with its reason; all others are in silver, and after a fix it is, too, exactly once."""
    shop = Checked(tmp_path, mysql80, EMAIL)
    rows = 100_000
    numbers = f"WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < {rows}) SELECT id,"
    shop.do(
        f"SET SESSION cte_max_recursion_depth = {rows}",
        f"INSERT INTO orders {numbers} IF(id = 77777, 'bad', CONCAT('n', id, '@shop')), id FROM n",
    )
    shop.task.catch_up()
    shop.assert_parted(spark, 77_777)
    shop.expect({**EMAIL, "kwargs": {"column": "email", "regex": "."}})
    (sent,) = shop.command(capsys, "quality", "release", str(shop.task.spec))
    assert (sent["released"], sent["failing"]) == (1, 0)
    shop.assert_parted(spark)
    shop.do("UPDATE orders SET amount = -1 WHERE id IN (1, 77777)")
    shop.task.catch_up()
    shop.assert_parted(spark)


@pytest.mark.long
def test_rows_of_an_ad_hoc_snapshot_are_checked(mysql80, spark, tmp_path, capsys):
    """An ad-hoc snapshot's rows are quarantined and recorded like those of the log."""
    shop = Checked(tmp_path, mysql80, EMAIL, AMOUNT, mode="all")
    shop.do("INSERT INTO orders VALUES (1, 'a@b', 1), (2, 'c@d', 2), (3, 'broken', -3)")
    shop.task.catch_up()
    shop.assert_parted(spark, 3)
    shop.task.server.execute(  # not in the log
        "SET sql_log_bin = 0", "UPDATE orders SET email = 'bad', amount = -2 WHERE id = 2", database=shop.task.database
    )
    shop.command(capsys, "snapshot", str(shop.task.spec), f"--table={shop.task.database}.orders")
    shop.task.catch_up()
    shop.assert_parted(spark, 2, 3)
    results = (
        spark.table(Lakehouse(root=str(shop.task.root)).metadata("t_quality")).orderBy("at", "on_failure").collect()
    )
    assert [(row.on_failure, row.evaluated, row.unexpected) for row in results] == [
        ("quarantine", 3, 1),
        ("warn", 3, 1),
        ("quarantine", 3, 2),
        ("warn", 3, 2),
    ]


def test_a_row_that_stops_its_table_is_not_in_silver(mysql80, spark, tmp_path, capsys):
    """stop: nothing of the range is in silver; the other tables continue. With a fixed suite the table does, too."""
    shop = Checked(tmp_path, mysql80, {**AMOUNT, "on-failure": "stop"})
    shop.do("CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1, 'a', 1)")
    shop.task.catch_up()
    shop.do("INSERT INTO orders VALUES (2, 'b', -2), (3, 'c', 3)", "INSERT INTO other VALUES (1)")
    with shop.task.environment():
        assert execute(["run", str(shop.task.write_spec()), "--until-caught-up"]) == 6
    assert "1 rows of" in capsys.readouterr().err
    assert spark.table(shop.silver).count() == 1
    assert spark.table(Lakehouse(root=str(shop.task.root)).silver(shop.task.database, "other")).count() == 1
    shop.expect(AMOUNT)
    shop.task.catch_up()
    assert spark.table(shop.silver).count() == 3


def test_silver_and_ranges_are_evaluated(mysql80, spark, tmp_path, capsys):
    """The expectations of all tables, and of this one, over silver, a range and its images: damage is found."""
    shop = Checked(
        tmp_path,
        mysql80,
        AMOUNT,
        {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "amount", "max_value": 100}},
    )
    task = shop.task
    shop.do(
        "CREATE TABLE items (id INT PRIMARY KEY, order_id INT, CONSTRAINT of_order FOREIGN KEY (order_id) REFERENCES orders (id))",
        "INSERT INTO orders VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)",
        "INSERT INTO items VALUES (1, 1), (2, 3), (3, NULL)",
    )
    task.catch_up()
    shop.do(
        "UPDATE orders SET amount = -1 WHERE id = 2",
        "UPDATE orders SET amount = 1 WHERE id = 2",
        "DELETE FROM items WHERE id = 1",
        "INSERT INTO orders VALUES (4, 'd', 4)",
    )
    task.catch_up()
    good = shop.command(capsys, "quality", str(task.spec), "--docs", str(tmp_path / "docs"))
    assert all(line["success"] for line in good)
    assert {line["expectation"].split("(")[0] for line in good} == {
        "key is unique",
        "key is not null",
        "version is of the log",
        "foreign key of_order",
        "freshness",
        "expect_column_values_to_be_between",
        "expect_column_mean_to_be_between",
    }
    (page,) = (tmp_path / "docs" / "validations" / task.database / "orders" / "table").rglob("*.html")
    assert "greater than or equal to" in page.read_text()
    assert str(page.relative_to(tmp_path / "docs")) in (tmp_path / "docs" / "index.html").read_text()
    assert (tmp_path / "docs" / "expectations" / task.database / "orders.html").is_file()
    ranged = shop.command(capsys, "quality", str(task.spec), "--last=1")
    assert all(line["success"] for line in ranged)
    assert {
        line["expectation"]: line["note"]
        for line in ranged
        if line["expectation"] == "row count" and line["table"].endswith("orders")
    } == {"row count": "4; the log gives 4"}
    images = shop.command(capsys, "quality", str(task.spec), "--last=1", "--images", code=6)
    assert [(line["evaluated"], line["unexpected"], line["samples"]) for line in images if not line["success"]] == [
        (3, 1, [{"id": 2}])
    ]

    spark.sql(f"UPDATE {shop.silver} SET amount = -7 WHERE id = 4")
    spark.sql(f"INSERT INTO {shop.silver} SELECT * FROM {shop.silver} WHERE id = 2")
    spark.sql(f"DELETE FROM {shop.silver} WHERE id IN (1, 3)")
    bad = shop.command(capsys, "quality", str(task.spec), code=6)
    failed = {
        (line["table"].split(".")[1], line["expectation"].split("(")[0]): line["samples"]
        for line in bad
        if not line["success"]
    }
    assert failed == {
        ("orders", "key is unique"): [{"id": 2}],
        ("items", "foreign key of_order"): [{"id": 2}],
        ("orders", "expect_column_values_to_be_between"): [{"id": 4}],
    }
    ranged = shop.command(capsys, "quality", str(task.spec), "--last=1", code=6)
    assert ("row count", False) in {(line["expectation"], line["success"]) for line in ranged}


@pytest.mark.long
def test_rows_are_not_counted_over_a_range_in_which_the_quarantine_changed(mysql80, spark, tmp_path, capsys):
    """A row that left the quarantine in the range or after it makes the row count unknown; later ranges are counted."""
    shop = Checked(tmp_path, mysql80, EMAIL)
    task, places = shop.task, []

    def counted(*arguments):
        lines = shop.command(capsys, "quality", str(task.spec), f"--table={task.database}.orders", *arguments)
        return [line["note"] for line in lines if line["expectation"] == "row count"]

    for statements in (
        ["INSERT INTO orders VALUES (1, 'a@b', 1), (2, 'broken', 2)"],
        [
            "UPDATE orders SET email = 'x@y' WHERE id = 2",
            "INSERT INTO orders VALUES (3, 'broken', 3), (5, 'broken', 5)",
        ],
        ["DELETE FROM orders WHERE id IN (3, 5)", "UPDATE orders SET amount = 7 WHERE id = 1"],
        ["INSERT INTO orders VALUES (4, 'c@d', 4)"],
    ):
        shop.do(*statements)
        task.catch_up()
        file, offset, _ = task.server.position()
        places.append(f"{file}:{offset}")
    assert spark.table(shop.apart).isEmpty()
    unknown = "not evaluated: rows of the table were quarantined"
    assert counted(f"--from={places[0]}", f"--to={places[1]}") == [unknown]
    assert counted(f"--from={places[0]}", f"--to={places[2]}") == [unknown]
    assert counted("--last=1") == ["3; the log gives 3"]


@pytest.mark.long
def test_texts_refer_to_each_other_as_in_the_source(mysql80, spark, tmp_path, capsys):
    """What InnoDB accepts is no orphan; under a collation that Spark lacks, other texts than equal ones are not judged."""
    shop = Checked(tmp_path, mysql80)
    task, database = shop.task, shop.task.database
    collations = {"ai": "utf8mb4_0900_ai_ci", "gen": "utf8mb4_general_ci", "uni": "utf8mb4_unicode_ci"}
    for name, collation in collations.items():
        code = f"code VARCHAR(9) CHARACTER SET utf8mb4 COLLATE {collation}"
        reference = f"CONSTRAINT of_{name} FOREIGN KEY (code) REFERENCES {name} (code)"
        shop.do(
            f"CREATE TABLE {name} ({code} PRIMARY KEY)",
            f"CREATE TABLE of_{name} (id INT PRIMARY KEY, {code}, {reference})",
            f"INSERT INTO {name} VALUES ('DE'), ('fr')",
            f"INSERT INTO of_{name} VALUES (1, 'de'), (2, 'DE'), (3, NULL)",
        )
    shop.do("INSERT INTO of_gen VALUES (4, 'De ')", "UPDATE of_uni SET code = 'DE' WHERE id = 1")
    task.catch_up()

    def judged(*arguments, code=0):
        lines = shop.command(capsys, "quality", str(task.spec), f"--table={database}.of_*", *arguments, code=code)
        found = {line["expectation"].rpartition("_")[2]: line for line in lines if "foreign" in line["expectation"]}
        return {name: (line["success"], line["evaluated"], line["note"]) for name, line in found.items()}

    assert judged() == {"ai": (True, 2, None), "gen": (True, 3, None), "uni": (True, 2, None)}
    shop.do("UPDATE of_uni SET code = 'dE' WHERE id = 1", "UPDATE of_gen SET code = 'FR ' WHERE id = 4")
    task.catch_up()
    unknown = "not evaluated: Spark does not support the collation utf8mb4_unicode_ci of code"
    assert judged()["uni"] == (True, None, unknown)
    assert judged("--last=1") == {"ai": (True, 0, None), "gen": (True, 1, None), "uni": (True, None, unknown)}
    spark.sql(f"DELETE FROM {Lakehouse(root=str(task.root)).silver(database, 'gen')} WHERE code = 'fr'")
    assert judged(code=6)["gen"] == (False, 3, None)


@pytest.mark.long
def test_a_contract_has_foreign_keys(mysql80, spark, tmp_path, capsys):
    """Rows without a parent are found where the source enforces nothing; a range reports exactly those it leaves."""
    shop = Checked(tmp_path, mysql80)
    task, database = shop.task, shop.task.database
    customers = f"foreign key (amount) references {database}.customers (id)"
    shop.expect(
        **{
            "foreign-keys": [
                {"columns": ["amount"], "references": f"{database}.customers", "referenced-columns": ["id"]},
                {"columns": ["id"], "references": f"{database}.parcels", "referenced-columns": ["id"]},
                {"columns": ["id"], "references": f"{database}.customers", "referenced-columns": ["number"]},
            ]
        }
    )
    named = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "name"}, "on-failure": "quarantine"}
    (shop.suite.parent / "customers.yml").write_text(yaml.safe_dump({"expectations": [named]}))
    shop.do(
        "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(10))",
        "INSERT INTO customers VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)",
        "INSERT INTO orders VALUES (1, '', 1), (2, '', 2), (3, '', 2), (4, '', NULL), (5, '', 4), (6, '', 3)",
    )
    task.catch_up()

    def evaluate(*arguments):
        lines = shop.command(capsys, "quality", str(task.spec), f"--table={database}.orders", *arguments, code=6)
        found = {line["expectation"]: line for line in lines}
        wrong = [
            found[f"foreign key (id) references {database}.{parent}"]
            for parent in ("parcels (id)", "customers (number)")
        ]
        assert [(line["success"], line["note"]) for line in wrong] == [
            (False, f"{database}.parcels is not in silver"),
            (False, f"{database}.customers has no column number"),
        ]
        line = found[customers]
        assert line["success"] is not bool(line["unexpected"])
        return line["evaluated"], line["unexpected"], line["samples"], line["note"]

    waiting = "1 more refer to rows that are quarantined"
    assert evaluate() == (5, 0, [], waiting)
    # The range changes no order: it deletes the parent of two.
    shop.do("DELETE FROM customers WHERE id = 2", "UPDATE customers SET name = 'd' WHERE id = 1")
    task.catch_up()
    assert evaluate("--last=1") == (2, 2, [{"id": 2}, {"id": 3}], None)
    # The next one writes an order without a parent, and deletes a parent and inserts it again.
    shop.do(
        "DELETE FROM customers WHERE id = 3",
        "INSERT INTO customers VALUES (3, 'e')",
        "INSERT INTO orders VALUES (7, '', 9)",
    )
    task.catch_up()
    assert evaluate("--last=1") == (1, 1, [{"id": 7}], None)
    assert evaluate() == (6, 3, [{"id": 2}, {"id": 3}, {"id": 7}], waiting)
    # After a statement that empties the parent, all rows are evaluated.
    shop.do("TRUNCATE TABLE customers", "INSERT INTO customers VALUES (1, 'a')")
    task.catch_up()
    assert evaluate("--last=1") == (6, 5, [{"id": key} for key in (2, 3, 5, 6, 7)], None)
