"""Renders the page: facts in, HTML out. It has no script and, by its policy, loads nothing over the network."""

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from dmdelta.config.section import format_duration
from dmdelta.report.chart_data import VERBS, figures_of
from dmdelta.report.facts import OPS, Report, TableActivity
from dmdelta.report.formatting import SCOPES, count_of, duration_of, minute_of, moment_of, whole_of
from dmdelta.report.health import plan_verdict, relay_reported_at, state_of

UNKNOWN = "—"
_PAGE = Environment(
    loader=PackageLoader("dmdelta.report", ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_PAGE.filters.update(moment=moment_of, minute=minute_of, duration=duration_of, whole=whole_of, span=format_duration)


@dataclass(frozen=True, slots=True)
class Tile:
    """One value at the top of the page, with a note."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment of a table's bar.

    Attributes:
        left, width: percent of the longest bar.
    """

    op: str
    left: float
    width: float


def render_page(report: Report) -> str:
    """A complete HTML document. Every name in it is escaped."""
    most = max((table.total for table in report.tables), default=0)
    return _PAGE.get_template("page.html.j2").render(
        report=report,
        verdict=plan_verdict(report),
        state=state_of(report),
        relay_reported=relay_reported_at(report),
        tiles=tiles_of(report),
        figures=figures_of(report),
        tables=[(table, _pieces(table, most)) for table in report.tables],
        ops=[op for op in OPS if any(op in table.rows for table in report.tables)],
        verbs=VERBS,
        scopes=SCOPES,
    )


def tiles_of(report: Report) -> list[Tile]:
    """The key values at the top."""
    lags = [pace.silver_lag for pace in report.paces if pace.silver_lag is not None]
    changes_at = [each.newest_change for each in report.status.sources if each.newest_change is not None]
    newest = max(changes_at, default=None)
    seconds = report.window.seconds if report.window else 0.0
    failed, ran = len(report.checks.failed), sum(run.passed + run.failed for run in report.checks.runs)
    changes = report.schema_change_count
    return [
        Tile(
            "silver behind the source",
            duration_of(lags[-1]) if lags else UNKNOWN,
            f"at most {duration_of(max(lags))}" if lags else "no changes from a live source",
        ),
        Tile(
            "row changes",
            count_of(report.row_count),
            f"{count_of(report.row_count / seconds)} a second" if seconds >= 1 else "",
        ),
        Tile(
            "tables changed",
            whole_of(report.table_count),
            "1 schema change" if changes == 1 else f"{whole_of(changes)} schema changes",
        ),
        Tile("failed checks", whole_of(failed) if ran else UNKNOWN, f"of {whole_of(ran)} runs" if ran else "none ran"),
        Tile(
            "newest change",
            newest.strftime("%H:%M:%S") if newest else UNKNOWN,
            newest.strftime("%d %b %Y, UTC") if newest else "",
        ),
    ]


def _pieces(table: TableActivity, most: int) -> Sequence[Piece]:
    pieces: list[Piece] = []
    left = 0.0
    for op in OPS:
        width = 100 * table.rows.get(op, 0) / most
        if width > 0:
            pieces.append(Piece(op, round(left, 2), round(width, 2)))
        left += width
    return pieces
