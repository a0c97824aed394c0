"""The paper's tables beside ours: what answers which entry, and in which quantity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from made_outcomes import outcome, seeds

from ilde.config import RunConfig, to_dict
from ilde.demos import resolve
from ilde.experiments.answers import ANOTHER_READING, EVERY, READ_BY, asked
from ilde.experiments.paper import paper_table
from ilde.experiments.quantities import IQM, SAMPLED
from ilde.experiments.recordings import demonstrator_in_words, trained_steps
from ilde.experiments.reproduction import reproduce
from ilde.fields import leaves
from ilde.reports.outcomes import FinalScore, Outcome, variant
from ilde.reports.thinned import Curve
from ilde.rewards.expression import TERMS

GAME: dict[str, Any] = {
    "task": "ALE/BeamRider-v5",
    "preset": "atari",
    "demos": "beam_rider/one-life-v0",
    "fraction": 0.1,
    "variant": (
        "rewards.curiosity_factor=0.02",
        "rewards.generative.log_variance_limit=4.0",
        "rewards.scale.terms=all",
    ),
}
"""The settings are those that the table asks for on this game."""
UNSEEN = GAME | {"demos": None, "fraction": 1.0}
READ = "effective λ = 0.2; "


def lines(table: str, outcomes: list[Outcome], label: str, task: str = "BeamRider") -> list[tuple[str, ...]]:
    words = reproduce(paper_table(table), outcomes)
    return [row[2:] for row in words.rows if row[:2] == (label, task)]


def asked_settings(game: str) -> tuple[str, ...]:
    table = paper_table("atari")
    (task,) = (task for task in table.tasks if task.name == game)
    return variant(to_dict(asked(table, task)["ilde"]))


UNTOLD = "one seed, kinds of its games not kept"


def test_the_papers_number_stands_beside_ours() -> None:
    runs = seeds("ilde", (1800.0, 2000.0, 2200.0), **GAME)
    ((paper, ours, interval, iqm, _, ratio, count, steps, verdict),) = lines("atari", runs, "ILDE")
    assert (paper, ours, interval) == ("11,453 ± 2,319", "2,000 ± 200", "1,503 to 2,497")
    assert (iqm, ratio, count, steps) == ("2,000", "2.22", "3", "400,000")
    said = "above the demonstrator; the paper's number, at 50M steps, lies above our interval; no `entropy`, `random`"
    assert verdict.startswith(f"{READ}{said}")


@pytest.mark.parametrize(
    ("scores", "side"),
    [
        ((1800.0, 1900.0), "above the demonstrator"),
        ((100.0, 200.0, 150.0), "below the demonstrator"),
        # The mean of 950 lies above 900, and three such seeds do not show that another three would.
        ((400.0, 950.0, 1500.0), "not apart from the demonstrator"),
        # Equal scores are not certain, and one seed without its games says nothing.
        ((950.0, 950.0, 950.0), "not told apart from the demonstrator: seeds without any spread"),
        ((950.0,), f"not told apart from the demonstrator: {UNTOLD}"),
    ],
)
def test_a_row_is_above_its_demonstrator_only_if_its_interval_is(scores: tuple[float, ...], side: str) -> None:
    ((*_, verdict),) = lines("atari", seeds("ilde", scores, **GAME), "ILDE")
    assert verdict.split("; ")[1] == side


def test_the_papers_number_is_held_against_our_interval() -> None:
    def place(*scores: float) -> str:
        ((*_, verdict),) = lines("atari", seeds("ilde", scores, **GAME), "ILDE")
        return next((part for part in verdict.split("; ") if "paper" in part), "")

    assert place(11_000.0, 12_000.0) == "the paper's number, at 50M steps, lies within our interval"
    assert place(90_000.0, 90_001.0) == "the paper's number, at 50M steps, lies below our interval"
    assert place(11_453.0) == ""


def test_one_seed_has_an_interval_of_its_games_which_says_so() -> None:
    def interval(table: str = "atari", **final: Any) -> tuple[str, str]:
        score = replace(FinalScore(1000.0, 100.0, 16, kinds=16), **final)
        row = lines(table, [outcome("ilde", 0, 1000.0, **GAME, greedy=score)], "ILDE")[0]
        return row[2], next((part for part in row[-1].split("; ") if "demonstrator" in part), "")

    # Student's t of 15 degrees of freedom is 2.131, times 100 over the root of 16.
    assert interval() == ("947 to 1,053 (its 16 episodes, 16 kinds)", "above the demonstrator by one seed")
    # Games that are alike are no further evidence: 3.182 times 100 over the root of 4; 900 lies within.
    few = ("841 to 1,159 (its 16 episodes, 4 kinds)", "not apart from the demonstrator by one seed")
    assert interval(kinds=4) == few
    assert interval(mean=700.0)[1] == "below the demonstrator by one seed"
    unknown = ("947 to 1,053 (its 16 episodes, kinds not kept)", f"not told apart from the demonstrator: {UNTOLD}")
    assert interval(kinds=None) == unknown
    assert interval(kinds=1) == ("-", "not told apart from the demonstrator: one seed")
    assert interval(std=0.0) == ("-", "not told apart from the demonstrator: one seed")
    assert interval("normalised")[0] == "-"
    assert interval(capped=1) == ("-", "")


def test_what_was_not_run_is_said() -> None:
    runs = seeds("ilde", (1800.0,), **GAME)
    assert lines("atari", runs, "GIRIL") == [("8,524 ± 1,085", *["-"] * 7, "not run")]
    assert lines("atari", runs, "entropy")[0][-1] == "not run"


def test_a_single_seed_has_no_interquartile_mean_and_ratios_have_no_column_for_it() -> None:
    runs = seeds("ilde", (1800.0,), **GAME)
    assert lines("atari", runs, "ILDE")[0][3] == "-"
    assert {IQM, SAMPLED} < set(reproduce(paper_table("hype"), runs).columns)
    for name in ("normalised", "efficiency", "efficiency-vs-giril"):
        words = reproduce(paper_table(name), runs)
        assert not {IQM, SAMPLED} & set(words.columns)
        assert {len(row) for row in words.rows} == {len(words.columns)}


def test_sampled_actions_stand_beside_greedy_ones() -> None:
    runs = seeds("ilde", (1800.0, 2000.0), **GAME)
    place = reproduce(paper_table("atari"), runs).columns.index(SAMPLED) - 2
    assert lines("atari", runs, "ILDE")[0][place] == "1,800"  # made outcomes are 100 lower with sampled actions
    unsampled = [replace(run, sampled=None) for run in runs]
    assert lines("atari", unsampled, "ILDE")[0][place] == "-"


def test_a_control_stands_in_the_table_without_a_number_of_the_papers() -> None:
    runs = [*seeds("ilde", (1800.0, 1900.0), **GAME), *seeds("constant", (300.0, 400.0), **UNSEEN)]
    ((paper, ours, *_, verdict),) = lines("atari", runs, "constant")
    assert (paper, ours, verdict) == ("not in the paper", "350 ± 71", "not apart from the demonstrator; control")


def test_what_our_scores_rest_on_is_noted() -> None:
    runs = [*seeds("ilde", (1800.0, 1900.0), **GAME), *seeds("constant", (300.0, 400.0), **UNSEEN, env_steps=9)]
    notes = reproduce(paper_table("atari"), runs).notes
    assert "ALE/BeamRider-v5 from 10% of beam_rider/one-life-v0: a score of ours is 20 episodes, greedy" in notes
    assert any("budgets differ (9, 400,000 steps)" in note for note in notes)


def test_settings_that_all_rows_share_are_noted() -> None:
    factor = {"variant": ("rewards.curiosity_factor=0.5",)}
    runs = [*seeds("ilde", (1800.0,), **GAME | factor), *seeds("shuffled", (300.0,), **GAME | factor)]
    told = "ALE/BeamRider-v5 from 10% of beam_rider/one-life-v0: preset atari, rewards.curiosity_factor=0.5"
    assert told in reproduce(paper_table("atari"), runs).notes
    assert told in reproduce(paper_table("atari-curves"), runs).notes
    assert "effective λ = 5; " in lines("atari", runs, "ILDE")[0][-1]


def test_a_weight_is_told_by_the_reward_expression() -> None:
    runs = [outcome("ilde", 0, 700.0, **GAME, reward="vail + 2*giril + entropy"), outcome("ilde", 0, 500.0, **GAME)]
    assert [row[1] for row in lines("lambda", runs, "λ = 2")] == ["700"]
    assert [row[1] for row in lines("lambda", runs, "λ = 10")] == ["500"]
    assert [row[1] for row in lines("lambda", runs, "λ = 20")] == ["-"]


def test_a_weight_is_what_it_comes_to_with_the_factor_of_the_curiosity() -> None:
    # In our reading λ = 10 comes to 0.2 on BeamRider.
    fifth = outcome("ilde", 0, 700.0, **GAME | {"variant": ("rewards.curiosity_factor=0.004",)})
    assert [row[1] for row in lines("lambda", [fifth], "λ = 2")] == ["700"]
    assert [row[1] for row in lines("lambda", [fifth], "λ = 10")] == ["-"]
    # The preset's own factor counts as well; elsewhere the expression decides, and the row says what it comes to.
    preset: dict[str, Any] = GAME | {"preset": "quick", "variant": ()}
    quick = outcome("ilde", 0, 700.0, **preset, reward="vail + 0.2*giril + entropy")
    assert [row[1] for row in lines("lambda", [quick], "λ = 2")] == ["700"]
    quick = outcome("ilde", 0, 700.0, **preset)
    ((_, ours, *_, verdict),) = lines("atari", [quick], "ILDE")
    assert (ours, verdict.split("; ")[:2]) == ("700", [ANOTHER_READING, "effective λ = 2"])
    assert "λ" not in lines("atari", [outcome("giril", 0, 700.0, **preset)], "GIRIL")[0][-1]


def test_a_run_with_other_settings_than_the_table_asks_for_says_so() -> None:
    def remark(method: str, label: str, **changes: Any) -> str:
        return str(lines("atari", [outcome(method, 0, 700.0, **GAME | changes)], label)[0][-1].split("; ")[0])

    unseen = {"demos": None, "fraction": 1.0, "variant": ()}
    assert remark("ilde", "ILDE") == READ.removesuffix("; ")
    clipped = {"variant": (*GAME["variant"], "rewards.features.clip=0.0")}
    assert remark("ilde", "ILDE", **clipped) == ANOTHER_READING
    assert remark("ilde", "ILDE", variant=(*GAME["variant"], "ppo.discount=0.9")) == ANOTHER_READING
    assert remark("ilde", "ILDE", variant=()) == ANOTHER_READING
    # What a budget decides is in the column of steps, the same preset for short trainings is the same reading, and
    # settings of terms that a method has not are no reading of it.
    assert remark("ilde", "ILDE", variant=(*GAME["variant"], "num_envs=16")) != ANOTHER_READING
    assert remark("ilde", "ILDE", preset="atari-short") != ANOTHER_READING
    assert remark("vail", "VAIL (r^k)", variant=("rewards.scale.terms=all",)) != ANOTHER_READING
    assert remark("vail", "VAIL (r^k)", variant=()) == ANOTHER_READING
    assert remark("giril", "GIRIL", variant=GAME["variant"][:2]) != ANOTHER_READING  # scaled in any case but "none"
    assert remark("giril", "GIRIL", variant=(*GAME["variant"][:2], "rewards.scale.terms=none")) == ANOTHER_READING
    for setting in ("scale.total=False", "scale.discount=0.5", "scale.window=3.0", "background_steps=10"):
        assert remark("entropy", "entropy", **unseen | {"variant": (f"rewards.{setting}",)}) == ANOTHER_READING
    assert remark("constant", "constant", **unseen | {"variant": ("rewards.scale.terms=none",)}) != ANOTHER_READING
    assert remark("constant", "constant", **unseen) != ANOTHER_READING
    assert remark("random", "random", **unseen) != ANOTHER_READING


def test_every_term_says_which_settings_it_reads() -> None:
    assert set(READ_BY) == set(TERMS)
    settings = [
        name.removeprefix("rewards.") for name, _ in leaves(to_dict(RunConfig())) if name.startswith("rewards.")
    ]
    prefixes = {*EVERY, *(prefix for own in READ_BY.values() for prefix in own)}
    assert {name for name in settings if not name.startswith(tuple(prefixes))} == {"scale.terms"}
    assert all(any(name.startswith(prefix) for name in settings) for prefix in prefixes)


def test_a_total_counts_what_the_table_asks_for() -> None:
    mean = "mean ratio to the expert"
    other = {"variant": ("rewards.curiosity_factor=1.0",)}
    longer = outcome("ilde", 0, 9000.0, **GAME | other, env_steps=900_000)
    assert lines("atari", [longer], "ILDE", mean)[0][1] == "10.00 over 1 game run, 1 by another reading"
    asked = outcome("ilde", 0, 1800.0, **GAME)
    assert lines("atari", [longer, asked], "ILDE", mean)[0][1] == "2.00 over 1 game run"
    # Of the same reading more seeds count for more than more steps.
    single = outcome("ilde", 0, 9000.0, **GAME, env_steps=900_000)
    pair = seeds("ilde", (1800.0, 1800.0), **GAME)
    total = lines("atari", [single, *pair], "ILDE", mean)[0]
    assert (total[1], total[6:8]) == ("2.00 over 1 game run", ("2", "400,000"))
    # What has no ratio counts for nothing, however long it ran.
    cut = outcome("ilde", 2, 1.0, **GAME, greedy=FinalScore(1.0, 1.0, 1, capped=1), env_steps=2_000_000)
    assert lines("atari", [asked, cut], "ILDE", mean)[0][1] == "2.00 over 1 game run"


def test_a_total_says_in_what_its_games_differ() -> None:
    krull = GAME | {"task": "ALE/Krull-v5", "demos": "krull/one-life-v0", "demos_hash": "d" * 64}
    runs = [*seeds("ilde", (1800.0, 1800.0), **GAME), outcome("ilde", 0, 450.0, **krull, env_steps=200_000)]
    assert lines("atari", runs, "ILDE", "games above the expert")[0][6:8] == ("1 to 2", "200,000 to 400,000")


def test_seeds_for_tuning_stand_in_no_table() -> None:
    tuned, own = outcome("ilde", 100, 9000.0, **GAME), outcome("ilde", 99, 1800.0, **GAME)
    words = reproduce(paper_table("atari"), [tuned, own])
    assert lines("atari", [tuned, own], "ILDE")[0][1] == "1,800"
    assert "left out: 1 run on seeds from 100 up, which are for tuning" in words.notes
    assert not any("tuning" in note for note in reproduce(paper_table("atari"), [own]).notes)


def test_noise_is_told_by_the_recording() -> None:
    shaken = GAME | {"demos": "beam_rider/one-life-tremble-0.3-v0", "demos_hash": "e" * 64}
    runs = [outcome("ilde", 0, 700.0, **shaken), outcome("ilde", 0, 800.0, **GAME)]
    runs += [*seeds("wrong-demos", (10.0, 20.0), **shaken), *seeds("random", (1.0, 2.0), **UNSEEN)]
    rows = {row[0]: row for row in reproduce(paper_table("noise"), runs).rows}
    found = {label: row[3] for label, row in rows.items() if row[3] != "-" and "demonstrator" not in label}
    assert found == {
        "p_tremble = 0.0": "800",
        "p_tremble = 0.3": "700",
        "wrong-demos/tremble-0.3": "15.0 ± 7.1",
        "random": "1.50 ± 0.71",
    }
    assert "`wrong-demos`" not in rows["p_tremble = 0.3"][-1]


def test_a_noisy_demonstrator_has_its_own_score() -> None:
    rows = {row[0]: row[2:4] for row in reproduce(paper_table("noise"), [outcome("ilde", 0, 800.0, **GAME)]).rows}
    assert rows["demonstrator"] == ("1,918 ± 645", "900")
    noisy = rows["demonstrator, from 10% of beam_rider/one-life-tremble-0.3-v0"]
    assert noisy == ("not in the paper", "1,146 ± 383")


def test_a_run_on_another_recording_stands_in_and_says_so() -> None:
    runs = [
        outcome("ilde", 0, 700.0, **GAME | {"demos": "mine.npz", "demos_hash": "e" * 64}),
        outcome("ilde", 0, 600.0, **GAME | {"fraction": 0.5, "demos_hash": "d" * 64}),
    ]
    assert [row[1] for row in lines("atari", runs, "ILDE, from 10% of mine.npz")] == ["700"]
    assert [row[1] for row in lines("atari", runs, "ILDE, from 50% of beam_rider/one-life-v0")] == ["600"]
    assert [row[1] for row in lines("atari", runs, "demonstrator, from 10% of mine.npz")] == ["900"]
    own = [*runs, outcome("ilde", 0, 800.0, **GAME)]
    found = [row[3] for row in reproduce(paper_table("atari"), own).rows if row[0].startswith("ILDE, ")]
    assert found == []
    assert [row[1] for row in lines("atari", own, "ILDE")] == ["800"]


def test_a_run_without_demonstrations_stands_once_and_beside_the_tables_own_demonstrator() -> None:
    other = GAME | {"demos": "a.npz", "demos_hash": "e" * 64, "demonstrator": 100.0}
    runs = [outcome("ilde", 0, 700.0, **other), outcome("constant", 0, 300.0, **UNSEEN)]
    ((*_, verdict),) = constant = lines("atari", runs, "constant")
    untold = f"not told apart from the demonstrator of 10% of a.npz: {UNTOLD}; control"
    assert (constant[0][5], verdict) == ("3.00", untold)
    runs.append(outcome("ilde", 0, 800.0, **GAME))
    ((*_, verdict),) = constant = lines("atari", runs, "constant")
    assert (constant[0][5], verdict) == ("0.33", f"not told apart from the demonstrator: {UNTOLD}; control")


HOPPER: dict[str, Any] = {"task": "Hopper-v5", "demos": "hopper-v5/one-v0", "demonstrator": 3576.1186331161484}


def test_another_version_of_a_task_stands_in_under_its_own_name() -> None:
    runs = [
        *seeds("hype", (3000.0, 3010.0), **HOPPER | {"preset": "replay", "fraction": 1.0}),
        *seeds("constant", (990.0, 991.0), task="Hopper-v5"),
    ]
    origin = "Hopper-v5 from hopper-v5/one-v0"
    assert lines("hype", runs, f"HyPE, {origin}", "Hopper")[0][:2] == ("2,995.0 ± 745.4", "3,005 ± 7")
    assert lines("hype", runs, "constant, Hopper-v5", "Hopper")[0][1] == "990 ± 1"
    assert lines("hype", runs, f"demonstrator, {origin}", "Hopper")[0][:2] == ("not in the paper", "3,576 ± 4")
    runs += seeds("hype", (5.0,), **HOPPER | {"task": "Hopper-v4", "demos": "hopper-v4/one-v0", "fraction": 1.0})
    assert lines("hype", runs, f"HyPE, {origin}", "Hopper") == []
    assert any(point.point == "rows of Hopper-v5" for point in paper_table("hype").protocol)


def test_a_preset_that_is_not_the_tables_is_said() -> None:
    ((*_, verdict),) = lines(
        "mujoco", seeds("ilde", (1.0,), **HOPPER), "ILDE, Hopper-v5 from 50% of hopper-v5/one-v0", "Hopper"
    )
    assert verdict.startswith(
        f"{ANOTHER_READING}; effective λ = 2; "
    )  # one row alone shares its preset with all, which a note says
    pair = [*seeds("ilde", (1.0,), **HOPPER), *seeds("hype", (1.0,), **HOPPER | {"preset": "replay"})]
    ((*_, verdict),) = lines("mujoco", pair, "ILDE, Hopper-v5 from 50% of hopper-v5/one-v0", "Hopper")
    assert verdict.startswith("preset quick; effective λ = 2; ")


def test_a_demonstrator_without_runs_is_as_its_recording_says() -> None:
    assert lines("atari", [], "demonstrator", "Qbert")[0][:2] == ("6,246 ± 2,964", "4,529 ± 63")
    assert lines("normalised", [], "demonstrator", "Qbert")[0][:2] == ("1.0", "1.0")
    assert lines("normalised", [outcome("ilde", 0, 800.0, **GAME)], "demonstrator")[0][:2] == ("1.0", "1.0")
    assert lines("mujoco", [], "demonstrator", "Reacher")[0][:2] == ("not in the paper", "-4.17 ± 1.95")


def test_totals_are_of_the_games_that_ran() -> None:
    krull = GAME | {"task": "ALE/Krull-v5", "demos": "krull/one-life-v0", "demos_hash": "d" * 64}
    krull |= {"variant": asked_settings("Krull")}
    runs = [outcome("ilde", 0, 1800.0, **GAME), outcome("ilde", 0, 450.0, **krull), outcome("vail", 0, 90.0, **GAME)]
    games, share, mean = "games above the expert", "share of games above the expert", "mean ratio to the expert"
    assert lines("atari", runs, "ILDE", games)[0][:2] == ("6", "1 of 2 games run")
    assert lines("atari", runs, "VAIL (r^k)", games)[0][:2] == ("1", "0 of 1 game run")
    assert lines("atari", runs, "ILDE", share)[0][:2] == ("100%", "50.0% of 2 games run")
    assert lines("atari", runs, "ILDE", mean)[0][:2] == ("5.33", "1.25 over 2 games run")
    assert lines("normalised", runs, "ILDE", mean)[0][:2] == ("5.33", "1.25 over 2 games run")
    no_imitation = lines("atari", runs, "ILDE w/o r^k", mean)[0]
    assert (no_imitation[0], no_imitation[1], no_imitation[-1]) == ("4.71 (recomputed 4.74)", "-", "not run")
    cut_short = outcome("ilde-no-imitation", 0, 1.0, **GAME | {"greedy": FinalScore(1.0, 1.0, 1, capped=1)})
    assert lines("atari", [cut_short], "ILDE w/o r^k", mean)[0][-1] == "no game to compare"
    assert lines("atari", runs, "demonstrator", mean)[0][:2] == ("1.0", "1.0")
    # Of several budgets with as many seeds the largest counts.
    runs.append(outcome("ilde", 0, 2700.0, **GAME, env_steps=800_000))
    assert lines("atari", runs, "ILDE", mean)[0][1] == "1.75 over 2 games run"


def test_an_entry_that_the_papers_own_numbers_do_not_give_says_so() -> None:
    assert lines("efficiency-vs-giril", [], "ILDE", "BattleZone")[0][0] == "90.06% (recomputed 89.99%)"
    assert lines("efficiency-vs-giril", [], "ILDE", "average")[0][0] == "22.68% (recomputed 22.67%)"


def test_giril_is_the_measure_on_the_same_recording_and_budget_only() -> None:
    def crossed(method: str, at: int, **changes: Any) -> Outcome:
        return outcome(
            method, 0, 950.0, **GAME | changes, evaluations=Curve((1, at, at + 1, at + 2), (0.0, *[950.0] * 3))
        )

    other = {"demos": "mine.npz", "demos_hash": "e" * 64}
    runs = [crossed("ilde", 200), crossed("giril", 100, **other), crossed("giril", 100, env_steps=9)]
    assert lines("efficiency-vs-giril", runs, "ILDE")[0][1] == "no GIRIL at these steps"
    assert lines("efficiency-vs-giril", [*runs, crossed("giril", 400)], "ILDE")[0][1] == "50.00%, both by evaluations"
    assert lines("efficiency-vs-giril", [*runs, crossed("giril", 400)], "ILDE", "average")[0][1] == (
        "50.00% over 1 game run"
    )
    low = Curve((1, 2, 3, 4), (0.0,) * 4)
    never = outcome("giril", 0, 1.0, **GAME, evaluations=low)
    assert lines("efficiency-vs-giril", [*runs, never], "ILDE")[0][1] == "GIRIL not within 400,000 steps"
    # Without evaluations of GIRIL the training scores of both are read, and here is none of either.
    assert lines("efficiency-vs-giril", [*runs, outcome("giril", 0, 1.0, **GAME)], "ILDE")[0][1] == "no curve"


def test_giril_and_a_method_are_read_by_the_same_curve() -> None:
    early, late = Curve((1, 100, 200, 400), (0.0, *[950.0] * 3)), Curve((1, 100, 200, 400), (0.0, 0.0, 0.0, 950.0))
    ilde = outcome("ilde", 0, 950.0, **GAME, evaluations=early, training=late)
    trained = outcome("giril", 0, 950.0, **GAME, training=Curve((1, 100, 200, 400), (0.0, 0.0, 950.0, 950.0)))
    # By its evaluations ILDE passed at 100, by its training scores at 400, and of GIRIL only the latter are known: 200.
    assert lines("efficiency-vs-giril", [ilde, trained], "ILDE")[0][1] == "-100.00%, both by training scores"


def test_a_whole_training_without_passing_the_demonstrator_counts_as_all_of_it() -> None:
    whole: dict[str, Any] = GAME | {"env_steps": 49_999_872}
    up = Curve((1, 10_000_000, 20_000_000, 49_999_872), (0.0, 950.0, 950.0, 950.0))
    low = Curve((1, 2, 3, 49_999_872), (0.0,) * 4)
    runs = [outcome("ilde", 0, 950.0, **whole, evaluations=up), outcome("giril", 0, 1.0, **whole, evaluations=low)]
    assert lines("efficiency-vs-giril", runs, "ILDE")[0][1] == "80.00%, both by evaluations"
    assert lines("efficiency-vs-giril", runs, "GIRIL")[0][1] == "0.00%, both by evaluations"
    assert lines("efficiency", runs, "GIRIL")[0][1] == "not within 49,999,872 steps, by evaluations"


def test_the_papers_last_four_evaluations_stand_beside_our_score() -> None:
    task: dict[str, Any] = {"task": "Hopper-v4", "demos": "hopper-v4/four-v0", "fraction": 1.0, "preset": "mujoco"}
    runs = [outcome("ilde", seed, 3000.0 + seed, **task, last_points=500.0 + seed) for seed in (0, 2)]
    ((_, ours, *_),) = lines("mujoco", runs, "ILDE", "Hopper")
    assert ours == "3,001 ± 1 (last four evaluations: 501 ± 1)"
    ((_, ours, *_),) = lines("mujoco", [*runs, outcome("ilde", 3, 3002.0, **task)], "ILDE", "Hopper")
    assert "last four" not in ours


def test_scores_of_cut_episodes_are_not_held_against_the_demonstrator() -> None:
    runs = seeds("ilde", (1800.0, 2000.0), **GAME | {"greedy": FinalScore(1800.0, 1.0, 1, capped=1)})
    words = reproduce(paper_table("atari"), runs)
    ((_, ours, _, _, _, ratio, *_, verdict),) = lines("atari", runs, "ILDE")
    assert (ours, ratio) == ("1,800 ± 0", "-")
    assert verdict == f"{READ}episodes cut short: not shown to imitate"
    assert any("episodes were cut short" in note for note in words.notes)
    assert any(note.endswith("a score of ours is 1 episode, greedy") for note in words.notes)
    assert lines("normalised", runs, "ILDE")[0][1] == "-"


def test_a_normalised_table_holds_ratios() -> None:
    runs = seeds("ilde", (1800.0, 2700.0), **GAME)
    ((_, ours, *_),) = lines("normalised", runs, "ILDE")
    assert ours == "2.50 ± 0.71"


def test_efficiency_is_a_part_of_the_papers_budget() -> None:
    up = Curve((1_000_000, 2_000_000, 3_000_000, 4_000_000), (0.0, 950.0, 950.0, 950.0))
    late = Curve((1_000_000, 2_000_000, 3_000_000, 4_000_000), (0.0, 0.0, 0.0, 950.0))
    runs = [outcome("ilde", 0, 950.0, **GAME, evaluations=up), outcome("giril", 0, 950.0, **GAME, evaluations=late)]
    spaced = "every 1,000,000 steps"
    assert lines("efficiency", runs, "ILDE")[0][:2] == ("11.48%", f"4.00% (2,000,000 steps), by evaluations {spaced}")
    assert lines("efficiency-vs-giril", runs, "ILDE")[0][1] == "50.00%, both by evaluations"
    low = outcome("ilde", 0, 1.0, **GAME, evaluations=Curve((1, 2, 3, 4), (0.0,) * 4))
    assert lines("efficiency", [low], "ILDE")[0][1] == "not within 400,000 steps, by evaluations"
    trained = outcome("ilde", 0, 1.0, **GAME, training=up)
    assert lines("efficiency", [trained], "ILDE")[0][1] == f"4.00% (2,000,000 steps), by training scores {spaced}"
    assert lines("efficiency", [outcome("ilde", 0, 1.0, **GAME)], "ILDE")[0][1] == "no curve"


def test_of_several_seeds_is_said_when_each_passed() -> None:
    steps = (100, 200, 300, 400)
    curves = [
        Curve(steps, (0.0, 2000.0, 2000.0, 2000.0)),
        Curve(steps, (0.0, 0.0, 0.0, 950.0)),
        Curve(steps, (0.0,) * 4),
    ]
    runs = [outcome("ilde", seed, 950.0, **GAME, evaluations=curve) for seed, curve in enumerate(curves)]
    said = lines("efficiency", runs, "ILDE")[0][1]
    assert said.endswith("(400 steps), by evaluations every 100 steps; 2 of 3 seeds alone, at 200 to 400")
    # Where not all have evaluations, no seed is read by its own: greedy scores are other scores.
    low = Curve(steps, (100.0,) * 4)
    mixed = [
        outcome("ilde", 0, 950.0, **GAME, training=low, evaluations=curves[0]),
        outcome("ilde", 1, 950.0, **GAME, training=curves[0]),
    ]
    said = lines("efficiency", mixed, "ILDE")[0][1]
    assert said.endswith("by training scores every 100 steps; 1 of 2 seeds alone, at 200 to 200")
    assert lines("efficiency", [runs[2], replace(runs[2], seed=0)], "ILDE")[0][1].startswith("not within")


def test_recordings_are_measured_themselves() -> None:
    demonstrator = "1,638,400 steps, 1,716 ± 448 in 30 episodes"
    assert lines("demo-lengths", [], "One-life demonstration: length") == [("702", "658", demonstrator)]
    assert lines("demo-lengths", [], "One-life demonstration: length", "StarGunner")[0][:2] == ("118", "304")
    assert lines("demo-lengths", [], "Full-episode demonstration: lives", "DemonAttack")[0][:2] == ("4", "8")


def test_the_protocol_says_how_long_the_demonstrators_were_trained() -> None:
    table = paper_table("demo-lengths")
    trained = [trained_steps(resolve(f"{task.folder}/one-life-v0").header) or 0 for task in table.tasks]
    said = f"stopped after {min(trained) / 1e6:.1f} to {max(trained) / 1e6:.1f} million steps"
    (demonstrator,) = table.protocol
    assert said in demonstrator.ours
    assert said in next(point.ours for point in paper_table("atari").protocol if point.point == "demonstration")


def test_a_recording_that_says_little_of_its_demonstrator_leaves_a_dash() -> None:
    known = resolve("qbert/one-life-v0").header
    assert demonstrator_in_words(replace(known, recorder="random", demonstrator=None)) == "-"
    assert demonstrator_in_words(replace(known, demonstrator=None)) == "1,843,200 steps"


def test_a_figure_shows_scores_along_the_way() -> None:
    low, high = (Curve((100_000, 200_000, 400_000), values) for values in ((10.0, 20.0, 40.0), (20.0, 20.0, 60.0)))
    runs = [outcome("ilde", 3, 1.0, **GAME, training=low), outcome("ilde", 4, 1.0, **GAME, training=high)]
    ((*cells, remarks),) = lines("atari-curves", runs, "ilde")
    assert cells == ["2", "400,000", "15.0 ± 7.1", "15.0 ± 7.1", "20.0 ± 0.0", "20.0 ± 0.0", "50.0 ± 14.1"]
    assert remarks == READ.removesuffix("; ")
    assert lines("atari-curves", runs, "vail") == [(*["-"] * 7, "not run")]
    runs.append(outcome("ilde", 5, 1.0, **GAME))
    assert lines("atari-curves", runs, "ilde")[0] == ("3", "400,000", *["-"] * 5, remarks)


def test_a_figure_shows_its_own_methods_and_the_controls() -> None:
    runs = [outcome(method, 0, 1.0, **HOPPER) for method in ("ilde", "vail", "ilde-no-bonus", "gail", "shuffled")]
    ran = {
        name: {row[0].split(",")[0] for row in reproduce(paper_table(name), runs).rows if row[-1] != "not run"}
        for name in ("mujoco-curves", "mujoco-ablations")
    }
    assert ran == {
        "mujoco-curves": {"ilde", "vail", "shuffled"},
        "mujoco-ablations": {"ilde", "ilde-no-bonus", "shuffled"},
    }


def test_a_mean_over_games_has_a_stratified_interval_where_every_game_has_five_seeds() -> None:
    krull = GAME | {"task": "ALE/Krull-v5", "demos": "krull/one-life-v0", "demos_hash": "d" * 64}
    krull |= {"variant": asked_settings("Krull")}
    runs = [*seeds("ilde", (900.0, 1800.0, 2700.0, 900.0, 1800.0), **GAME)]
    runs += seeds("ilde", (450.0, 450.0, 450.0, 450.0, 900.0), **krull)
    mean = "mean ratio to the expert"
    (_, ours, interval, iqm, *_) = lines("atari", runs, "ILDE", mean)[0]
    # Ratios of 1, 2, 3, 1, 2 and four times 0.5, 1: means of 1.8 and 0.6.
    assert ours == "1.20 over 2 games run"
    low, high = map(float, interval.split(" to "))
    assert 0.75 < low < 1.2 < high < 1.75
    # Of the ten ratios in order the middle six are 0.5, 0.5, 1, 1, 1, 2.
    assert iqm.startswith("1.00 [")
    assert lines("normalised", runs, "ILDE", mean)[0][2] == interval
    assert lines("atari", runs[1:], "ILDE", mean)[0][2] == "-"
