"""The pool of mutants, and a seeded sample of it: one operator of cosmic-ray applied at one position."""

import ast
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = ("binlog", "checkpoint", "config", "ddl", "model", "rules", "sharding")
"""Packages of the pool, completely."""
EFFECTS = ("checkpoint/store",)
"""Modules of these packages that are not in the pool: their effects are in Delta tables, which tests/spark tests."""
PLANNING = ("engine", "silver", "sink")
"""Packages of which only the functions `plan_*` are in the pool."""
PURE_MODULES = (
    *("apply/ready", "apply/table_state", "apply/turns", "control/protocol", "control/state"),
    *("ingest/queue", "ingest/repeated", "run/stopping", "snapshot/plan"),
    *("task/live_settings", "task/mapping", "task/risks"),
    *("telemetry/counters", "telemetry/lag", "telemetry/stats", "telemetry/task_status"),
    *("validation/results", "validation/sink_tables"),
)
"""Engine modules that are completely in the pool: they make decisions and have no side effects."""
OPERATORS = (
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "ReplaceAndWithOr",
    "ReplaceBinaryOperator",
    "ReplaceBreakWithContinue",
    "ReplaceComparisonOperator",
    "ReplaceContinueWithBreak",
    "ReplaceFalseWithTrue",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceUnaryOperator",
    "ZeroIterationForLoop",
)
"""Not RemoveDecorator: every test fails without `@dataclass`, and none fails without `@cache`."""
IDENTITY = ("_Eq_Is", "_NotEq_IsNot", "_Is_Eq", "_IsNot_NotEq")
"""They give the same result for the enumerations and None that they are used with."""

_NO_OPERANDS = ("parameters", "dictorsetmaker")
"""Syntax nodes in which `*` and `**` are not operators."""


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One change of one module.

    Attributes:
        path: of the module, below the root.
        line, column: the position; lines count from 1, columns from 0.
        operator: cosmic-ray's name of the operator.
        occurrence: of the operator in the module, from 0.
        inside: the position is in a function; otherwise it is executed on import.
    """

    path: str
    line: int
    column: int
    operator: str
    occurrence: int
    inside: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column} {self.operator}"


def modules(root: Path) -> Iterator[tuple[str, bool]]:
    """The modules of the pool, and whether only their functions `plan_*` are included."""
    package = root / "dmdelta"
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        name = inside.with_suffix("").as_posix()
        whole = (inside.parts[0] in PACKAGES and name not in EFFECTS) or name in _PURE
        if whole or inside.parts[0] in PLANNING:
            yield path.relative_to(root).as_posix(), not whole


_PURE = {f"engine/{module}" for module in PURE_MODULES}


def pool(root: Path) -> Iterator[list[Mutant]]:
    """The mutants of each position, in the order of positions."""
    for path, planning in modules(root):
        text = (root / path).read_text("utf-8")
        regions = Regions(text)
        found: dict[tuple[int, int], list[Mutant]] = {}
        for name, occurrence, (line, column) in _occurrences(text):
            if regions.is_ignored(line, column) or (planning and not regions.is_planning(line)):
                continue
            mutant = Mutant(path, line, column, name, occurrence, regions.is_function(line))
            found.setdefault((line, column), []).append(mutant)
        yield from (found[place] for place in sorted(found))


def sample(root: Path, positions: Sequence[Sequence[Mutant]], count: int, seed: int) -> list[Mutant]:
    """`count` mutants at different positions that Python can compile.

    `+` has eleven replacements but is not more likely to be sampled than `not`.
    """
    rng, chosen = random.Random(seed), list[Mutant]()
    for number in rng.sample(range(len(positions)), len(positions)):
        mutant = rng.choice(positions[number])
        if len(chosen) == count:
            break
        if _compiles(mutated((root / mutant.path).read_text("utf-8"), mutant)):
            chosen.append(mutant)
    return sorted(chosen)


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def mutated(text: str, mutant: Mutant) -> str:
    """The text of the module with the change.

    Raises:
        ValueError: the module has no such occurrence.
    """
    from cosmic_ray.mutating import mutate_code

    changed = mutate_code(text, _operators()[mutant.operator](), mutant.occurrence)
    if changed is None:
        raise ValueError(f"{mutant}: the module has no such occurrence")
    return str(changed)


class Regions:
    """Which parts of a module have no mutants, are functions, and are functions `plan_*`."""

    def __init__(self, text: str) -> None:
        nodes, lines = list(ast.walk(ast.parse(text))), text.encode().splitlines()
        functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        self._ignored = [_span(node, lines) for node in _ignored(nodes)]
        self._bodies = [(node.body[0].lineno, node.end_lineno or 0) for node in functions]
        self._planning = [(node.lineno, node.end_lineno or 0) for node in functions if node.name.startswith("plan_")]

    def is_ignored(self, line: int, column: int) -> bool:
        return any(begin <= (line, column) < end for begin, end in self._ignored)

    def is_function(self, line: int) -> bool:
        return any(begin <= line <= end for begin, end in self._bodies)

    def is_planning(self, line: int) -> bool:
        return any(begin <= line <= end for begin, end in self._planning)


def _ignored(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What no correct program can notice.

    Annotations, decorators and TYPE_CHECKING change what mypy allows. `strict` of `zip` is an assertion.
    """
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            yield from (each.value for each in node.keywords if each.arg == "strict")
        yield from getattr(node, "decorator_list", ())
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            yield node.test
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns:
            yield node.returns


def _span(node: ast.expr, lines: Sequence[bytes]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where a node begins and ends: ast counts the bytes of a line, cosmic-ray its characters."""
    begin, end = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    first, last = ((line, len(lines[line - 1][:column].decode())) for line, column in (begin, end))
    return first, last


def _operators() -> dict[str, Callable[[], Any]]:
    from cosmic_ray.operators.provider import OperatorProvider

    provider = OperatorProvider()
    return {name: provider[name] for name in provider if name.startswith(OPERATORS) and not name.endswith(IDENTITY)}


def _occurrences(text: str) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """Operator, occurrence and position, in cosmic-ray's order of the nodes."""
    from cosmic_ray.ast import ast_nodes, get_ast

    nodes = list(ast_nodes(get_ast(text)))
    for name, build in _operators().items():
        operator, occurrence = build(), 0
        for node in nodes:
            for begin, _ in operator.mutation_positions(node):
                if node.parent is None or node.parent.type not in _NO_OPERANDS:
                    yield name, occurrence, begin
                occurrence += 1
