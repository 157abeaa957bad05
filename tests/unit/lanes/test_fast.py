"""`make test-fast`: the list of its tests on a server."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[2]
LIST = TESTS / "fast.txt"


def functions_of(file: Path) -> set[str]:
    """The test functions of a file that every test run includes."""
    functions = [node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    return {one.name for one in functions if "pytest.mark.long" not in map(ast.unparse, one.decorator_list)}


def test_each_line_names_a_test_of_the_ordinary_lane():
    """A renamed, removed or long test in the list is an error."""
    lines = LIST.read_text("utf-8").splitlines()
    assert len(lines) == len(set(lines)) > 0
    for line in lines:
        file, _, test = line.partition("::")
        functions = functions_of(TESTS.parent / file)
        assert functions, f"{LIST.name}: {file} has no tests"
        assert not test or test.partition("[")[0] in functions, f"{LIST.name}: no test {line}"
