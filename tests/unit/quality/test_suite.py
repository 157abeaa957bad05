"""Loading suites from files."""

import pytest

from dmdelta.errors import ConfigError
from dmdelta.quality.suite import load_suites


def write(folder, text):
    file = folder / "shop" / "orders.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_suite_belongs_to_the_table_of_its_file_name(tmp_path):
    """Expectations have their file and line, and whether a running task evaluates them."""
    write(
        tmp_path,
        "columns:\n  id: {type: bigint, nullable: false}\nkey: [id]\nexpectations:\n"
        "  - type: expect_column_values_to_be_between\n    kwargs: {column: amount, min_value: 0}\n    on-failure: stop\n"
        "  - type: expect_column_mean_to_be_between\n    kwargs: {column: amount, max_value: 9}\n"
        "  - type: expect_column_values_to_be_in_set\n    kwargs: {column: amount, value_set: [1], mostly: 0.9}\n",
    )
    suites = load_suites(tmp_path)
    first, second, third = suites.of(("shop", "orders")).expectations
    assert [each.is_row_wise for each in (first, second, third)] == [True, False, False]
    assert first.place.endswith("orders.yml:5")
    assert str(first) == "expect_column_values_to_be_between(column=amount, min_value=0)"
    assert suites.guards(("shop", "orders"))
    assert not suites.guards(("shop", "others"))
    assert suites.of(("shop", "others")).expectations == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("expectation: []", "1: unknown key 'expectation': did you mean 'expectations'"),
        ("columns:\n  id: {typ: int}", "2: unknown key 'columns.id.typ': did you mean 'type'"),
        ("expectations:\n  - type: be_nice", "expectations\\[0\\].type"),
        (
            "foreign-keys:\n  - {columns: [a, b], references: shop.c, referenced-columns: [a]}",
            "2: foreign-keys\\[0\\]: columns and referenced-columns need the same number of columns",
        ),
        ("foreign-keys:\n  - {columns: [a], references: c, referenced-columns: [a]}", "foreign-keys\\[0\\].references"),
        (
            "expectations:\n  - type: expect_column_mean_to_be_between\n    on-failure: quarantine",
            "orders.yml:2: expect_column_mean_to_be_between does not evaluate single rows",
        ),
    ],
)
def test_an_invalid_suite_is_reported_with_its_line(tmp_path, text, words):
    """The error is raised on load, before a task starts."""
    write(tmp_path, text)
    with pytest.raises(ConfigError, match=words):
        load_suites(tmp_path)


def test_a_folder_without_suites_is_an_error(tmp_path):
    """A misspelt folder must not disable all expectations."""
    with pytest.raises(ConfigError, match="no suite in"):
        load_suites(tmp_path / "schemes")


def test_foreign_keys_name_silver_tables(tmp_path):
    """Columns are paired in order; results name the keys in SQL notation."""
    text = "foreign-keys:\n  - {columns: [a, b], references: other.parents, referenced-columns: [x, y]}"
    write(tmp_path, text)
    (key,) = load_suites(tmp_path).of(("shop", "orders")).foreign_keys(("shop", "orders"))
    assert (key.child, key.parent) == (("shop", "orders"), ("other", "parents"))
    assert key.columns == (("a", "x"), ("b", "y"))
    assert key.name == "(a, b) references other.parents (x, y)"
