"""What a reader of a table must know: runs that are not in it, single seeds, budgets and settings that differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from ilde.reports.numbers import counted
from ilde.reports.outcomes import FinalScore, Outcome
from ilde.reports.rows import Row

FEW_EPISODES = 10
Played: TypeAlias = Sequence[tuple[str, list[FinalScore]]]
"""The final scores of each row."""


def notes_on(
    rows: Sequence[Row], unfinished: Iterable[Outcome], repeated: Iterable[Outcome], *, greedy: bool
) -> tuple[str, ...]:
    """The notes under a table of greedy or of sampled scores, most important first."""
    played = [(row.label, _finals(row, greedy)) for row in rows]
    found = (
        *_unfinished(unfinished),
        *_budgets(rows),
        *_settings(rows),
        *_single_seeds(rows),
        *_few_episodes(played),
        *_cut_short(rows),
        *_time_limits(played),
        *_alike(played),
        *_repeated(repeated),
        *_no_ratio(rows),
    )
    return tuple(found)


def _unfinished(outcomes: Iterable[Outcome]) -> list[str]:
    """Runs that broke off are named: leaving out the failures alone would flatter a method."""
    named = [
        f"{o.method} seed {o.seed} ({_how_far(o)})" for o in sorted(outcomes, key=lambda o: (o.state, o.method, o.seed))
    ]
    return [f"not in the table: {', '.join(named)}"] if named else []


def _how_far(outcome: Outcome) -> str:
    if outcome.state == "finished":
        return "finished without a final evaluation"
    return f"{outcome.state} at {outcome.env_steps:,} of {outcome.planned_steps:,} steps"


def _budgets(rows: Sequence[Row]) -> list[str]:
    budgets = sorted({row.env_steps for row in rows if row.env_steps and row.kind != "reference"})
    if len(budgets) < 2:
        return []
    said = ", ".join(f"{steps:,}" for steps in budgets)
    return [f"budgets differ ({said} steps): a control counts only for rows of its own budget"]


def _settings(rows: Sequence[Row]) -> list[str]:
    unlike = [
        f"{row.label} ({', '.join(names)})"
        for row in rows
        if (names := [difference.control for difference in row.differences if not difference.alike])
    ]
    return [f"held against controls with other settings: {', '.join(unlike)}"] if unlike else []


def _single_seeds(rows: Sequence[Row]) -> list[str]:
    single = dict.fromkeys(row.method for row in rows if len(row.scores) == 1)
    return [f"one seed has no interval, and nothing is claimed of it: {', '.join(single)}"] if single else []


def _finals(row: Row, greedy: bool) -> list[FinalScore]:
    return [final for outcome in row.outcomes if (final := outcome.final(greedy=greedy)) is not None]


def _few_episodes(played: Played) -> list[str]:
    fewest = min((final.episodes for _, finals in played for final in finals), default=FEW_EPISODES)
    if fewest >= FEW_EPISODES:
        return []
    return [f"final scores are means over as few as {counted(fewest, 'episode')} a seed"]


def _cut_short(rows: Sequence[Row]) -> list[str]:
    cut = dict.fromkeys(row.label for row in rows if row.cut)
    if not cut:
        return []
    return [f"episodes were cut short, so these scores are not of whole ones and nothing is claimed: {', '.join(cut)}"]


def _time_limits(played: Played) -> list[str]:
    """Where a limit ends most episodes, a score says what was reached in that time, not how long a policy lasts."""
    known = [(label, [final for final in finals if final.truncated is not None]) for label, finals in played]
    counts = [(label, *_ends(finals)) for label, finals in known if finals]
    if counts and all(ended == episodes for _, ended, episodes, _ in counts):
        return ["every episode ended at the time limit"]
    most = [
        f"{label} ({ended} of {episodes}{length})" for label, ended, episodes, length in counts if 2 * ended > episodes
    ]
    return [f"episodes that ended at the time limit: {', '.join(most)}"] if most else []


def _ends(finals: Sequence[FinalScore]) -> tuple[int, int, str]:
    """Episodes that a time limit ended, all episodes, and how long they were on average where that is known."""
    episodes = sum(final.episodes for final in finals)
    lengths = [final.length * final.episodes for final in finals if final.length is not None]
    mean = f", {sum(lengths) / episodes:,.0f} steps each on average" if len(lengths) == len(finals) else ""
    return sum(final.truncated or 0 for final in finals), episodes, mean


def _alike(played: Played) -> list[str]:
    """A greedy policy in a game without chance plays few games again and again, and its interval says little."""
    known = [(label, [(f.kinds, f.episodes) for f in finals if f.kinds is not None]) for label, finals in played]
    few = [
        f"{label} ({sum(kinds for kinds, _ in counts)} kinds among {sum(episodes for _, episodes in counts)})"
        for label, counts in known
        if any(2 * kinds <= episodes for kinds, episodes in counts)
    ]
    return [f"many episodes are alike in return and length: {', '.join(few)}"] if few else []


def _repeated(outcomes: Iterable[Outcome]) -> list[str]:
    names = [o.run for o in outcomes]
    return [f"seeds that stand in the table already were left out: {', '.join(names)}"] if names else []


def _no_ratio(rows: Sequence[Row]) -> list[str]:
    if any(row.demonstrator is not None and row.demonstrator <= 0 for row in rows):
        return ["no ratios: where the demonstrator's return is not positive, they would order policies wrongly"]
    return []
