"""Translates sqlglot's tree to a value: an allow-list of node types, all others are refused."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from dmdelta.model.schema import TableSchema
from dmdelta.rules.expressions import functions
from dmdelta.rules.expressions.arithmetic import calculated, negated
from dmdelta.rules.expressions.comparison import OPERATORS, compare, like
from dmdelta.rules.expressions.terms import ColumnSql, column_value, literal_value, temporal_literal
from dmdelta.rules.expressions.values import Kind, Refusal, Value, common_kind, truth

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_JOINED = {exp.And: "AND", exp.Or: "OR", exp.Xor: "<>"}
_LITERAL_TYPES = {
    "DATE": Kind.DATE,
    "DATETIME": Kind.DATETIME,
    "TIMESTAMP": Kind.DATETIME,
    "TIMESTAMPTZ": Kind.DATETIME,
}
_IGNORED_ARGS = {"binary", "safe", "coalesce", "typed", "negate"}
"""Arguments that are handled where they matter, or that describe other databases' behavior."""
_ARGS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Column: ("this", "table", "db"),
    exp.Literal: ("this", "is_string"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
    exp.Case: ("this", "ifs", "default"),
    exp.If: ("this", "true", "false"),
    exp.Coalesce: ("this", "expressions"),
    exp.Concat: ("expressions",),
    exp.Substring: ("this", "start", "length"),
    exp.Cast: ("this", "to"),
}


class Translation:
    """Translates one expression over one table's columns."""

    def __init__(self, schema: TableSchema, column_sql: ColumnSql, flavor: str) -> None:
        self._flavor = flavor
        self._schema = schema
        self._column_sql = column_sql
        self._of: dict[type[exp.Expr], Callable[[exp.Expr], Value]] = {
            exp.Paren: lambda node: self.value(node.this),
            exp.Null: lambda node: Value(Kind.NULL, "NULL", _shown(node)),
            exp.Boolean: lambda node: Value(Kind.TRUTH, str(bool(node.this)).upper(), _shown(node)),
            exp.Not: lambda node: self._truth(f"(NOT {truth(self.value(node.this))})", node),
            exp.Neg: lambda node: negated(self.value(node.this), _shown(node)),
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: lambda node: self._like(node, "\\"),
            exp.Escape: self._escape,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Coalesce: self._coalesce,
            exp.Nullif: self._nullif,
            exp.Cast: self._cast,
            exp.Collate: lambda node: functions.collated(self.value(node.this), node.expression.name, _shown(node)),
            exp.Length: self._length,
            exp.Substring: self._substring,
            exp.Left: self._left,
            exp.Concat: lambda node: functions.concatenated(self._all(node.expressions), _shown(node)),
        }

    def value(self, node: exp.Expr) -> Value:
        """The value of a node.

        Raises:
            Refusal: it cannot be translated faithfully.
        """
        kind = type(node)
        allowed = _ARGS.get(kind, ("this", "expression"))
        for name, given in node.args.items():
            if given and name not in allowed and name not in _IGNORED_ARGS:
                raise Refusal(_shown(node), f"{name} is not supported")
        if isinstance(node, exp.Column):
            return column_value(node, self._schema, self._column_sql)
        if isinstance(node, exp.Literal):
            return literal_value(node)
        if kind in OPERATORS:
            return compare(self.value(node.this), OPERATORS[kind], self.value(node.expression), _shown(node))
        if kind in _JOINED:
            joined = f" {_JOINED[kind]} ".join(truth(self.value(side)) for side in (node.this, node.expression))
            return self._truth(f"({joined})", node)
        if kind in _ARITHMETIC:
            sides = self._all([node.this, node.expression])
            return calculated(kind, sides[0], sides[1], _shown(node), self._flavor)
        if kind in functions.DATE_PARTS:
            return functions.date_part(kind, self.value(_undated(node.this)), _shown(node))
        if kind in functions.OF_ONE:
            return functions.OF_ONE[kind](self.value(node.this), _shown(node))
        if kind not in self._of:
            raise Refusal(_shown(node), "this operator or function is not supported")
        return self._of[kind](node)

    def _all(self, nodes: Sequence[exp.Expr]) -> list[Value]:
        return [self.value(node) for node in nodes]

    def _truth(self, sql: str, node: exp.Expr) -> Value:
        return Value(Kind.TRUTH, sql, _shown(node))

    def _is(self, node: exp.Expr) -> Value:
        value, what = self.value(node.this), node.expression
        if isinstance(what, exp.Null):
            return self._truth(f"({value.sql} IS NULL)", node)
        if isinstance(what, exp.Boolean):
            return self._truth(f"({truth(value)} <=> {str(bool(what.this)).upper()})", node)
        raise Refusal(_shown(node), "IS is supported with NULL, TRUE, FALSE and UNKNOWN")

    def _in(self, node: exp.Expr) -> Value:
        value, listed = self.value(node.this), self._all(node.expressions)
        if {one.kind for one in listed} >= {Kind.TEXT, Kind.EXACT}:
            raise Refusal(_shown(node), "text and numbers in one list")
        conditions = [compare(value, "=", one, _shown(node)).sql for one in listed]
        return self._truth(f"({' OR '.join(conditions)})", node)

    def _between(self, node: exp.Expr) -> Value:
        value, low, high = self._all([node.this, node.args["low"], node.args["high"]])
        if {low.kind, high.kind} == {Kind.TEXT, Kind.EXACT}:
            raise Refusal(_shown(node), "text and a number as bounds")
        bounds = [compare(value, ">=", low, _shown(node)).sql, compare(value, "<=", high, _shown(node)).sql]
        return self._truth(f"({' AND '.join(bounds)})", node)

    def _like(self, node: exp.Expr, escape: str) -> Value:
        matched = like(self.value(node.this), self.value(node.expression), escape, _shown(node))
        return replace(matched, sql=f"(NOT {matched.sql})") if node.args.get("negate") else matched

    def _escape(self, node: exp.Expr) -> Value:
        escape = node.expression
        if not isinstance(node.this, exp.Like) or not isinstance(escape, exp.Literal) or len(escape.this) != 1:
            raise Refusal(_shown(node), "ESCAPE must have exactly one character")
        return self._like(node.this, escape.this)

    def _case(self, node: exp.Expr) -> Value:
        subject = self.value(node.this) if node.this is not None else None
        whens = [
            truth(
                self.value(one.this) if subject is None else compare(subject, "=", self.value(one.this), _shown(node))
            )
            for one in node.args["ifs"]
        ]
        default = node.args.get("default") or exp.Null()
        return self._chosen(whens, [*(one.args["true"] for one in node.args["ifs"]), default], node)

    def _if(self, node: exp.Expr) -> Value:
        condition = truth(self.value(node.this))
        return self._chosen([condition], [node.args["true"], node.args.get("false") or exp.Null()], node)

    def _chosen(self, conditions: list[str], results: list[exp.Expr], node: exp.Expr) -> Value:
        values = common_kind(self._all(results))
        whens = " ".join(f"WHEN {when} THEN {value.sql}" for when, value in zip(conditions, values, strict=False))
        return self._as_one(f"CASE {whens} ELSE {values[-1].sql} END", values, node)

    def _coalesce(self, node: exp.Expr) -> Value:
        values = common_kind(self._all([node.this, *node.expressions]))
        return self._as_one(f"coalesce({', '.join(value.sql for value in values)})", values, node)

    def _nullif(self, node: exp.Expr) -> Value:
        value, other = self.value(node.this), self.value(node.expression)
        same = compare(value, "=", other, _shown(node)).sql
        return replace(value, sql=f"IF({same}, NULL, {value.sql})", text=_shown(node), literal=None)

    def _as_one(self, sql: str, values: Sequence[Value], node: exp.Expr) -> Value:
        model = next((value for value in values if value.kind is not Kind.NULL), values[0])
        unsigned = any(value.unsigned for value in values)
        return replace(model, sql=sql, text=_shown(node), literal=None, unsigned=unsigned, year=False)

    def _cast(self, node: exp.Expr) -> Value:
        name = node.args["to"].this.name
        if isinstance(node.this, exp.Literal) and name in _LITERAL_TYPES:
            literal = temporal_literal(literal_value(node.this), _LITERAL_TYPES[name])
            if literal.kind is _LITERAL_TYPES[name]:
                return literal
        if name == "BIGINT":
            return functions.signed(self.value(node.this), _shown(node))
        raise Refusal(_shown(node), "CAST is supported to SIGNED, from integers" if name != "BINARY" else "use COLLATE")

    def _length(self, node: exp.Expr) -> Value:
        return functions.length(self.value(node.this), _shown(node), in_bytes=bool(node.args.get("binary")))

    def _substring(self, node: exp.Expr) -> Value:
        size = self.value(node.args["length"]) if node.args.get("length") else None
        return functions.substring(self.value(node.this), self.value(node.args["start"]), size, _shown(node))

    def _left(self, node: exp.Expr) -> Value:
        first = Value(Kind.EXACT, "1", "1", 1, literal="1")
        return functions.substring(self.value(node.this), first, self.value(node.expression), _shown(node))


def _undated(node: exp.Expr) -> exp.Expr:
    """The parser wraps the argument of YEAR(), MONTH() and DAY() in a conversion to a date."""
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def _shown(node: exp.Expr) -> str:
    return node.sql("mysql")
