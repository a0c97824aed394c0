"""One self-contained page: tables, curves, reward terms, films, provenance. It runs no script and asks for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ilde.reports.across import Aggregate
from ilde.reports.charts import Line, keys, line_chart, share_chart
from ilde.reports.comparison import CONTROLS, Comparison
from ilde.reports.curves import band, shares
from ilde.reports.films import Film, film_section
from ilde.reports.markup import Html, element, join
from ilde.reports.numbers import counted, score
from ilde.reports.origins import origin_section
from ilde.reports.outcomes import Outcome
from ilde.reports.paper_section import paper_section
from ilde.reports.rows import Row
from ilde.reports.score_section import across_section, difference_section, score_section
from ilde.reports.tables import WordTable
from ilde.rewards.expression import TERMS

COLOURS = 12
"""Classes c0 to c11 of the style sheet; controls have k0 to k4."""
DASHES = 4
"""Of a control: its own, then those of the classes again-1 to again-3; of a colour: none, then lap-1 to lap-3."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:"
"""What a browser may load: nothing but what is in the page."""


@dataclass(frozen=True)
class Report:
    """Everything a page shows."""

    title: str
    comparisons: tuple[Comparison, ...]
    aggregates: tuple[Aggregate, ...]
    films: Mapping[int, Sequence[Film]]
    """By the number of the comparison."""
    skipped: Mapping[str, str]
    """Folders that could not be read, and why."""
    paper: tuple[WordTable, ...] = ()
    """Tables of the paper with our numbers beside its own."""


def render(report: Report) -> str:
    """The page as HTML; equal reports give equal bytes."""
    styles = line_styles(report.comparisons)
    outcomes = [o for c in report.comparisons for o in _outcomes(c)]
    sections = [_task_section(n, c, styles, report.films.get(n, ())) for n, c in enumerate(report.comparisons)]
    body = element(
        "main",
        _header(report, len({o.run for o in outcomes})),
        across_section(report.aggregates, report.comparisons),
        *sections,
        paper_section(report.paper),
        _reading(),
        _skipped(report.skipped),
        origin_section(outcomes),
    )
    page = element("html", _head(report.title), element("body", body), lang="en")
    return f"<!doctype html>\n{page}\n"


def line_styles(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """A class for every row's label, the same on all charts of the page."""
    rows = {row.label: row for comparison in comparisons for row in comparison.rows}
    own = [label for label, row in rows.items() if row.kind not in ("control", "reference")]
    colours = {label: f"c{number % COLOURS}{_lap(number // COLOURS)}" for number, label in enumerate(own)}
    controls = {label: _control_style(label, rows) for label, row in rows.items() if row.kind == "control"}
    references = [label for label, row in rows.items() if row.kind == "reference"]
    return {label: f"reference{_lap(number)}" for number, label in enumerate(references)} | colours | controls


def _lap(number: int) -> str:
    """The class of the dashes that a colour has when it comes again; the first time its line is whole."""
    return f" lap-{number % DASHES}" if number % DASHES else ""


def _control_style(label: str, rows: Mapping[str, Row]) -> str:
    """A control's colour, and dashes of its own where it stands there at several budgets or settings."""
    twins = [other for other, row in rows.items() if row.kind == "control" and row.method == rows[label].method]
    number = twins.index(label) % DASHES
    return f"k{CONTROLS.index(rows[label].method)}{f' again-{number}' if number else ''}"


def _outcomes(comparison: Comparison) -> list[Outcome]:
    return [*(outcome for row in comparison.rows for outcome in row.outcomes), *comparison.unfinished]


def _head(title: str) -> Html:
    style = files("ilde.reports").joinpath("page.css").read_text(encoding="utf-8")
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Html(style)),
    )


def _header(report: Report, runs: int) -> Html:
    facts = f"{counted(runs, 'run')} · {counted(len(report.comparisons), 'task')}"
    return element("header", element("h1", report.title), element("p", facts, class_="facts"))


def _task_section(number: int, comparison: Comparison, styles: Mapping[str, str], films: Sequence[Film]) -> Html:
    shown = [f"from {comparison.shown}"] if comparison.demos else []
    facts = [*shown, *comparison.settings]
    return element(
        "section",
        element("h2", comparison.task),
        element("p", *(element("span", fact, class_="fact") for fact in facts), class_="facts"),
        element("p", summary(comparison), class_="lead"),
        score_section(comparison, styles),
        element("ul", *(element("li", note) for note in comparison.notes), class_="notes") if comparison.notes else "",
        difference_section(comparison),
        *_curves(comparison, styles),
        _terms(comparison),
        film_section(films),
        id=f"task-{number}",
    )


def summary(comparison: Comparison) -> str:
    """What the table shows, in two sentences."""
    judged = [row for row in comparison.rows if row.verdict is not None]
    shown = [row.label for row in judged if row.verdict is not None and row.verdict.imitates]
    level = "" if comparison.demonstrator is None else f"The demonstrator scores {score(comparison.demonstrator)}. "
    if not judged:
        return f"{level}No run here learns from demonstrations."
    if not shown:
        return f"{level}No method is shown to imitate yet."
    return f"{level}Shown to imitate: {', '.join(shown)}{'' if len(judged) == 1 else f', of {len(judged)} methods'}."


def _curves(comparison: Comparison, styles: Mapping[str, str]) -> list[Html]:
    """Learning curves, of finished and unfinished runs."""
    groups = [(row.label, styles[row.label], row.outcomes) for row in comparison.rows]
    groups += [(f"{o.method} seed {o.seed}, {o.state}", "unfinished", (o,)) for o in comparison.unfinished]
    charts = (
        ("Training score over agent steps: true return of sampled actions, 95% interval over seeds", "training"),
        ("Evaluations over agent steps: true return, 95% interval over seeds", "evaluations"),
    )
    return [_curve_chart(title, name, groups, comparison.demonstrator) for title, name in charts]


def _curve_chart(
    title: str, name: str, groups: Sequence[tuple[str, str, tuple[Outcome, ...]]], demonstrator: float | None
) -> Html:
    found = [(label, style, band([getattr(run, name) for run in runs])) for label, style, runs in groups]
    lines = [Line(label, style, entry) for label, style, entry in found if entry is not None]
    return line_chart(title, lines, demonstrator) if lines else Html()


def _terms(comparison: Comparison) -> Html:
    """What the reward of each method with several terms was made of."""
    found = [(row.label, parts) for row in comparison.rows if (parts := shares(row.outcomes)) is not None]
    if not found:
        return Html()
    named = {name: term_style(name) for _, (_, parts) in found for name in parts}
    charts = [share_chart(label, env_steps, parts, named) for label, (env_steps, parts) in found]
    return join(
        element("h3", "What the reward was made of"),
        element("p", "Each term's part of the weighted mean reward, over agent steps.", class_="hint"),
        element("div", *charts, class_="grid-of-charts"),
        keys([(name, f"share {style}") for name, style in named.items()]),
    )


def term_style(name: str) -> str:
    """The class of a reward term; a name out of a file is not trusted to be one."""
    return f"t-{name}" if name in TERMS else "t-other"


def _reading() -> Html:
    said = (
        "mean ± std over seeds, as the paper prints them; 95% interval: Student's, of the mean over seeds.",
        "ratio: mean over the demonstrator's return; seeds above it: how many scored more than the demonstrator.",
        "“imitates” is said only where the 95% interval of a row lies above that of every control, and the interval "
        "(Welch) of their difference above 0; otherwise the row is “not shown to imitate”, and the controls in the way "
        "are named.",
        "Bands around curves are 95% intervals of the mean over seeds; a single seed has none.",
    )
    return element("section", element("h2", "How to read this"), element("ul", *(element("li", s) for s in said)))


def _skipped(skipped: Mapping[str, str]) -> Html:
    if not skipped:
        return Html()
    lines = [element("li", f"{name}: {reason}") for name, reason in skipped.items()]
    return element("section", element("h2", "Left out"), element("ul", *lines, class_="notes"))
