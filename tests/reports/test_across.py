"""What is pooled over tasks, what is left out, and how often a run counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_outcomes import seeds

from ilde.reports.across import aggregate, left_out
from ilde.reports.comparison import compare
from ilde.reports.outcomes import FinalScore, Outcome
from ilde.reports.tables import across_table

ELSEWHERE = {"task": "Hopper-v5", "demos_hash": "d" * 64}


def two_tasks() -> list[Outcome]:
    elsewhere = {"task": "Hopper-v5", "demos_hash": "d" * 64, "demonstrator": 100.0}
    first = seeds("ilde", (900, 1800)) + seeds("constant", (450, 450)) + seeds("vail", (900, 900))
    return first + seeds("ilde", (100, 300), **elsewhere) + seeds("constant", (200, 0), task="Hopper-v5")


def test_several_tasks_are_joined_by_their_ratios() -> None:
    ilde, constant = aggregate(compare(two_tasks()))
    assert (ilde.label, constant.label) == ("ilde", "constant")
    assert (len(ilde.tasks), ilde.seeds) == (2, 4)
    # Ratios 1, 2 and 1, 3: the mean of the tasks' means 1.5 and 2; the middle two of all four.
    assert (ilde.mean, ilde.iqm) == (1.75, 1.5)
    assert ilde.interval is None  # of two seeds a task
    # 4 of 4 on the first task; 100 and 300 against 200 and 0 win 3 of 4 on the second.
    assert [(chance.control, chance.value) for chance in ilde.chances] == [("constant", 0.875)]


def test_five_seeds_on_each_task_have_an_interval_together() -> None:
    first = seeds("ilde", (900, 1800, 1000, 1100, 1200))
    elsewhere = seeds("ilde", (900, 1500, 1000, 1100, 1200), task="Hopper-v5", demos_hash="d" * 64)
    (five,) = aggregate(compare(first + elsewhere))
    assert five.interval is not None
    assert 1 <= five.interval[0] < five.iqm < five.interval[1] <= 2
    (four,) = aggregate(compare(first + elsewhere[:4]))
    assert four.interval is None


def test_a_control_of_another_budget_is_no_measure_over_tasks_either() -> None:
    runs = [replace(o, env_steps=1000) if o.method == "constant" else o for o in two_tasks()]
    assert [entry.chances for entry in aggregate(compare(runs)) if entry.label == "ilde"] == [()]


def test_one_task_is_not_joined_with_anything() -> None:
    assert aggregate(compare(seeds("ilde", (1, 2)))) == ()


def test_a_table_over_tasks_is_the_same_again() -> None:
    runs = two_tasks()
    assert aggregate(compare(runs)) == aggregate(compare(list(reversed(runs))))


def pooled(first: list[Outcome], second: list[Outcome]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels of the rows over both tasks, and what was left out."""
    comparisons = compare(first + second)
    return tuple(entry.label for entry in aggregate(comparisons)), left_out(comparisons)


def test_settings_that_one_task_shares_among_its_rows_still_keep_another_task_apart() -> None:
    wide = {"variant": ("num_envs=16",), **ELSEWHERE}
    first, second = seeds("ilde", (1, 2)), seeds("ilde", (1, 2), **wide)
    assert [row.label for c in compare(first + second) for row in c.rows] == ["ilde", "ilde"]
    assert pooled(first, second) == ((), ("ilde on HalfCheetah-v5", "ilde on Hopper-v5"))


@pytest.mark.parametrize(
    "changes", [{"preset": "mujoco"}, {"reward": "vail + 2*giril"}, {"variant": ("a=1",)}, {"env_steps": 900_000}]
)
def test_rows_of_unlike_runs_are_not_pooled(changes: dict[str, object]) -> None:
    assert pooled(seeds("ilde", (1, 2)), seeds("ilde", (1, 2), **ELSEWHERE, **changes))[0] == ()
    assert pooled(seeds("ilde", (1, 2), **changes), seeds("ilde", (1, 2), **ELSEWHERE, **changes))[1] == ()


def test_budgets_within_the_rounding_to_rollouts_are_pooled() -> None:
    near, far = (seeds("ilde", (1, 2), **ELSEWHERE, env_steps=steps) for steps in (407_000, 409_000))
    assert pooled(seeds("ilde", (1, 2)), near) == (("ilde",), ())
    assert pooled(seeds("ilde", (1, 2)), far)[0] == ()


@pytest.mark.parametrize("budgets", [(400_000, 407_000, 414_000), (400_000, 393_000, 407_000)])
def test_budgets_do_not_drift_from_task_to_task(budgets: tuple[int, int, int]) -> None:
    tasks = [{}, ELSEWHERE, {"task": "Walker2d-v5", "demos_hash": "e" * 64}]
    first, second, third = (seeds("ilde", (1, 2), **task, env_steps=b) for task, b in zip(tasks, budgets, strict=True))
    # The third is within 2% of one of the others, and not of both.
    assert pooled(first, second + third) == (("ilde",), ("ilde on Walker2d-v5",))


def test_a_row_joins_the_budget_that_is_its_own_before_a_near_one() -> None:
    twice = seeds("ilde", (900.0, 900.0)) + seeds("ilde", (1800.0, 1800.0), env_steps=404_000)
    for elsewhere in (400_000, 404_000):
        (entry,) = aggregate(compare(twice + seeds("ilde", (9.0, 9.0), **ELSEWHERE, env_steps=elsewhere)))
        assert entry.env_steps == (elsewhere, elsewhere)
    both = [replace(run, **ELSEWHERE) for run in twice]
    assert [entry.env_steps for entry in aggregate(compare(twice + both))] == [(400_000,) * 2, (404_000,) * 2]


def test_steps_are_nothing_to_a_random_policy() -> None:
    runs = seeds("ilde", (1, 2)) + seeds("ilde", (1, 2), **ELSEWHERE) + seeds("random", (1, 2))
    comparisons = compare(runs + seeds("random", (1, 2), task="Hopper-v5", env_steps=200_000))
    assert [entry.label for entry in aggregate(comparisons)] == ["ilde", "random"]
    assert left_out(comparisons) == ()


def test_a_control_is_held_against_over_all_tasks_in_one_of_its_ways() -> None:
    # The stronger of two ways is another one on each task.
    ways = ({"variant": ("a=1",)}, {"variant": ("a=2",)})
    runs = seeds("ilde", (500, 600)) + seeds("ilde", (500, 600), **ELSEWHERE)
    for way, here, there in zip(ways, (700, 100), (100, 400), strict=True):
        runs += seeds("constant", (here, here + 1), **way)
        runs += seeds("constant", (there, there + 1), task="Hopper-v5", **way)
    (ilde,) = [entry for entry in aggregate(compare(runs)) if entry.label == "ilde"]
    assert [(chance.control, chance.value) for chance in ilde.chances] == [("constant", 0.5)]


def test_no_steps_and_some_are_not_pooled() -> None:
    assert pooled(seeds("iq-learn", (1, 2), env_steps=0), seeds("iq-learn", (1, 2), **ELSEWHERE))[0] == ()


def test_a_task_stands_once_in_a_row() -> None:
    twice = seeds("ilde", (1, 2)) + seeds("ilde", (3, 4), env_steps=404_000)
    (entry,) = aggregate(compare(twice + seeds("ilde", (1, 2), **ELSEWHERE)))
    assert (len(entry.tasks), entry.seeds) == (2, 4)


def test_a_row_over_tasks_names_all_of_its_settings() -> None:
    settings = {"variant": ("num_envs=16",), "preset": "mujoco"}
    first, second = seeds("ilde", (1, 2), **settings), seeds("ilde", (1, 2), **settings, **ELSEWHERE)
    assert pooled(first, second)[0] == ("ilde (preset mujoco, num_envs=16)",)
    longer = [[*runs, *(replace(run, env_steps=900_000) for run in runs)] for runs in (first, second)]
    assert pooled(*longer)[0] == tuple(
        f"ilde (preset mujoco, num_envs=16, {steps} steps)" for steps in ("400,000", "900,000")
    )


def test_a_usual_preset_is_named_where_the_method_has_another_one_elsewhere() -> None:
    games = [{"task": f"ALE/{game}-v5", "demos_hash": game[0] * 64, "preset": "atari"} for game in ("Qbert", "Krull")]
    runs = seeds("ilde", (1, 2)) + seeds("ilde", (1, 2), **ELSEWHERE)
    for game in games:
        runs += seeds("ilde", (1, 2), **game)
    assert {entry.label for entry in aggregate(compare(runs))} == {"ilde (preset quick)", "ilde (preset atari)"}


def test_a_control_with_other_settings_on_one_task_is_no_measure_over_both() -> None:
    own = {"variant": ("a=1",)}
    runs = seeds("ilde", (1, 2), **own) + seeds("ilde", (1, 2), **own, **ELSEWHERE) + seeds("constant", (1, 2), **own)
    chances = []
    for settings in (own, {}):
        comparisons = compare(runs + seeds("constant", (1, 2), task="Hopper-v5", **settings))
        chances.append([chance.control for entry in aggregate(comparisons) for chance in entry.chances])
    assert chances == [["constant"], []]


def test_a_control_that_was_cut_short_on_one_task_is_no_measure_over_both() -> None:
    def chances(capped: int) -> list[str]:
        cut = FinalScore(0.0, 1.0, 20, capped=capped)
        runs = [replace(o, greedy=cut) if (o.method, o.task) == ("constant", "Hopper-v5") else o for o in two_tasks()]
        (ilde,) = [entry for entry in aggregate(compare(runs)) if entry.label == "ilde"]
        return [chance.control for chance in ilde.chances]

    assert (chances(0), chances(20)) == (["constant"], [])


def test_a_random_policy_has_no_settings_in_which_it_could_differ() -> None:
    runs = seeds("ilde", (1, 2)) + seeds("ilde", (1, 2), **ELSEWHERE)
    runs += seeds("random", (1, 2), preset="mujoco") + seeds("random", (3, 4), task="Hopper-v5", variant=("a=1",))
    comparisons = compare(runs)
    entry, alone = aggregate(comparisons)
    assert [chance.control for chance in entry.chances] == ["random"]
    assert (alone.label, alone.seeds, len(alone.tasks), left_out(comparisons)) == ("random", 4, 2, ())


def test_a_random_policy_is_not_pooled_with_another_method_that_is_rewarded_alike() -> None:
    runs = seeds("ilde", (1, 2)) + seeds("ilde", (1, 2), **ELSEWHERE)
    runs += seeds("random", (1, 2)) + seeds("constant", (1, 2), task="Hopper-v5")
    assert [entry.label for entry in aggregate(compare(runs))] == ["ilde"]


def test_rows_that_were_not_pooled_are_named_under_the_table() -> None:
    runs = seeds("ilde", (1, 2)) + seeds("ilde", (1, 2), **ELSEWHERE, env_steps=900_000) + seeds("gail", (1, 2))
    runs += [*seeds("vail", (1, 2), env_steps=100), *seeds("vail", (1, 2), **ELSEWHERE, env_steps=100)]
    comparisons = compare(runs)
    words = across_table(aggregate(comparisons), comparisons)
    assert words is not None
    assert [row[:2] for row in words.rows] == [("vail", "100")]
    # `gail` ran on one task only: nobody would look for it here.
    assert words.notes[-1].endswith("no other task: ilde on HalfCheetah-v5, ilde on Hopper-v5")


def test_budgets_of_different_rows_stand_beside_them() -> None:
    runs = [*seeds("ilde", (1, 2)), *seeds("ilde", (1, 2), **ELSEWHERE, env_steps=404_000)]
    runs += [*seeds("vail", (1, 2), env_steps=100), *seeds("vail", (1, 2), **ELSEWHERE, env_steps=100)]
    words = across_table(aggregate(compare(runs)), ())
    assert words is not None
    assert [row[:2] for row in words.rows] == [("ilde", "400,000 to 404,000"), ("vail", "100")]
    assert "rows of different steps do not compare" in words.notes


def test_a_control_that_saw_nothing_counts_once_over_two_recordings() -> None:
    scores = (100.0, 150.0, 200.0, 250.0, 300.0)
    recordings = [seeds("ilde", scores), seeds("ilde", scores, demos="a/c", demos_hash="e" * 64)]
    runs = [
        *recordings[0],
        *recordings[1],  # of the same names, as where both were called runs/ilde/seed-0
        *seeds("constant", scores),
    ]
    ilde, constant = aggregate(compare(runs))
    assert (ilde.seeds, constant.seeds) == (10, 5)
    (alone,) = [row for row in compare(runs)[0].rows if row.method == "constant"]
    assert constant.interval is not None
    assert ilde.interval is not None
    assert alone.iqm_interval is not None
    wide = constant.interval[1] - constant.interval[0]
    assert wide > 1.2 * (ilde.interval[1] - ilde.interval[0])
    assert wide == pytest.approx((alone.iqm_interval[1] - alone.iqm_interval[0]) / 900, rel=0.35)
