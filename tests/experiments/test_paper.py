"""The paper's numbers against the paper, read and worked out by hand."""

from __future__ import annotations

import pytest

from ilde.data import UserError
from ilde.envs import canonical_env_id
from ilde.experiments.paper import PaperTable, hypotheses, motivation, paper_claims, paper_table, paper_tables
from ilde.experiments.paper.derived import (
    Disagreement,
    crossing_steps,
    disagreements,
    evaluation_steps,
    improvements,
    ratio_totals,
    ratios,
)
from ilde.experiments.paper.tables import FOLDER, TABLES, PaperValue, method_of, parse_printed
from ilde.methods import find_method

FIGURES = ("atari-curves", "mujoco-curves", "mujoco-ablations")
ABLATIONS = ("vail", "giril", "ilde-no-curiosity", "ilde-no-bonus", "ilde-no-imitation", "ilde")
MEAN_RATIO = "mean ratio to the expert"

each_table = pytest.mark.parametrize("table", paper_tables(), ids=lambda table: table.name)


def entry(table: str, row: str, task: str) -> tuple[float | None, float | None]:
    value = paper_table(table).rows[row][task]
    return value.mean, value.std


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("11,453 ± 2,319", PaperValue(11453.0, 2319.0, "11,453 ± 2,319", 0)),
        ("-499 ± 183", PaperValue(-499.0, 183.0, "-499 ± 183", 0)),
        ("2,995.0 ± 745.4", PaperValue(2995.0, 745.4, "2,995.0 ± 745.4", 1)),
        ("-916.26%", PaperValue(-916.26, None, "-916.26%", 2)),
        ("-", PaperValue(None, None, "-", 0)),
    ],
)
def test_an_entry_is_read_as_it_is_printed(text: str, value: PaperValue) -> None:
    assert parse_printed(text) == value


def test_what_is_not_a_number_of_the_paper_is_refused() -> None:
    for text in ("", "1,918,645)", "12 +- 3", "about 5"):
        with pytest.raises(ValueError, match="as the paper prints them"):
            parse_printed(text)


def test_a_value_agrees_to_the_digits_printed() -> None:
    assert parse_printed("4.71").agrees_with(4.7149)
    assert not parse_printed("4.71").agrees_with(4.7151)
    assert parse_printed("25%").agrees_with(25.4)
    assert not parse_printed("-").agrees_with(0.0)


@pytest.mark.parametrize(
    ("table", "row", "task", "mean", "std"),
    [
        ("atari", "vail", "BeamRider", 91, 116),
        ("atari", "giril", "Qbert", 76491, 81265),
        ("atari", "ilde-no-curiosity", "DemonAttack", 143, 120),
        ("atari", "ilde-no-bonus", "BattleZone", 18179, 21181),
        ("atari", "ilde-no-imitation", "Krull", 27495, 28773),
        ("atari", "ilde", "StarGunner", 25361, 38557),
        ("normalised", "giril", "Qbert", 12.25, None),
        ("normalised", "ilde", "StarGunner", 1.13, None),
        ("efficiency", "ilde", "Krull", 83.57, None),
        ("efficiency", "vail", "BeamRider", None, None),
        ("efficiency-vs-giril", "ilde-no-bonus", "Qbert", -116.57, None),
        ("lambda", "ilde/lambda-2", "BeamRider", 12600, 1351),
        ("lambda", "ilde/lambda-20", "BeamRider", 8973, 1315),
        ("noise", "ilde/tremble-0.05", "BeamRider", 8893, 951),
        ("noise", "ilde/tremble-0.5", "BeamRider", 10735, 1198),
        ("iq-learn", "iq-learn", "DemonAttack", 88.5, 92),
        ("iq-learn", "iq-learn", "Krull", 4500, 2030),
        ("hype", "hype", "Ant", 785.8, 528.6),
        ("hype", "hype-ilde", "Hopper", 3372.6, 359.4),
        ("mujoco", "vail", "Reacher", -499, 183),
        ("mujoco", "ilde", "HumanoidStandup", 77887, 6123),
        ("demo-lengths", "expert/one-life", "StarGunner", 118, None),
        ("demo-lengths", "expert/full", "DemonAttack", 11335, None),
        ("demo-lengths", "expert/full-lives", "BattleZone", 5, None),
    ],
)
def test_an_entry_read_off_the_paper(table: str, row: str, task: str, mean: float | None, std: float | None) -> None:
    assert entry(table, row, task) == (mean, std)


def test_the_experts_are_those_of_the_main_table() -> None:
    experts = {task: (value.mean, value.std) for task, value in paper_table("atari").demonstrators.items()}
    assert experts == {
        "BeamRider": (1918, 645),
        "DemonAttack": (8820, 2893),
        "BattleZone": (22410, 5839),
        "Qbert": (6246, 2964),
        "Krull": (6520, 941),
        "StarGunner": (22495, 11516),
    }
    assert paper_table("iq-learn").demonstrators == paper_table("atari").demonstrators
    assert paper_table("noise").demonstrators == {"BeamRider": paper_table("atari").demonstrators["BeamRider"]}
    assert paper_table("mujoco").demonstrators == paper_table("hype").demonstrators == {}


def test_every_file_is_a_table_and_has_its_name() -> None:
    assert {path.stem for path in (FOLDER / "tables").glob("*.toml")} == set(TABLES)
    with pytest.raises(UserError, match=r"unknown table 'atary'; did you mean atari\?"):
        paper_table("atary")


@each_table
def test_methods_and_tasks_are_ours(table: PaperTable) -> None:
    for method in (*table.methods, *map(method_of, table.rows)):
        assert find_method(method).name == method
    assert set(map(method_of, table.rows)) <= set(table.methods)
    assert [canonical_env_id(task.env) for task in table.tasks] == [task.env for task in table.tasks]


@each_table
def test_no_entry_is_missing(table: PaperTable) -> None:
    assert (not table.rows) == (table.name in FIGURES)
    tasks = [task.name for task in table.tasks]
    for row, entries in table.rows.items():
        assert list(entries) == tasks, row
        assert table.labels[row]
    assert list(table.demonstrators) in ([], tasks)
    for entries in table.totals.values():
        assert set(entries) - {"expert"} == set(table.rows)


def test_the_tables_have_the_papers_shapes() -> None:
    shapes = {table.name: (len(table.rows), len(table.tasks)) for table in paper_tables() if table.rows}
    assert shapes == {
        "atari": (6, 6),
        "normalised": (5, 6),
        "efficiency": (5, 6),
        "efficiency-vs-giril": (5, 6),
        "lambda": (4, 1),
        "noise": (6, 1),
        "iq-learn": (1, 6),
        "hype": (2, 2),
        "mujoco": (3, 4),
        "demo-lengths": (4, 6),
    }
    assert tuple(paper_table("atari").rows) == ABLATIONS
    assert {name: len(table.totals) for name in TABLES if (table := paper_table(name)).totals} == {
        "atari": 3,
        "normalised": 1,
        "efficiency-vs-giril": 1,
    }


def test_spread_is_printed_for_every_return_and_for_nothing_else() -> None:
    for table in paper_tables():
        spread = {value.std is not None for entries in table.rows.values() for value in entries.values()}
        assert spread in (set(), {table.quantity.startswith("average return")}), table.name


def test_lambda_10_and_no_noise_are_the_main_tables_ilde() -> None:
    main = entry("atari", "ilde", "BeamRider")
    assert entry("lambda", "ilde/lambda-10", "BeamRider") == entry("noise", "ilde/tremble-0", "BeamRider") == main


def test_ratios_are_returns_over_the_experts() -> None:
    found = ratios(paper_table("atari"))
    assert found["ilde"]["Krull"] == pytest.approx(23716 / 6520)
    totals = ratio_totals(paper_table("atari"))
    assert totals["games above the expert"] == {"expert": 0} | dict(zip(ABLATIONS, (1, 5, 2, 4, 5, 6), strict=True))
    assert totals[MEAN_RATIO]["vail"] == pytest.approx(0.3689, abs=1e-4)


def test_improvements_count_never_as_the_whole_time() -> None:
    found = improvements(paper_table("efficiency"))
    assert found["vail"]["BeamRider"] == pytest.approx(100 * (9.84 - 100) / 9.84)
    assert found["ilde"]["StarGunner"] == pytest.approx(6.6)
    assert set(found["giril"].values()) == {0.0}


def test_what_the_paper_derives_is_what_its_tables_give_but_for_these() -> None:
    means = [("giril", "4.87", 4.88), ("ilde-no-bonus", "3.50", 3.51), ("ilde-no-imitation", "4.71", 4.74)]
    expected = [Disagreement(name, row, MEAN_RATIO, *v) for name in ("atari", "normalised") for row, *v in means]
    versus = "efficiency-vs-giril"
    expected += [
        Disagreement(versus, "vail", "DemonAttack", "-662.21%", -662.20),
        Disagreement(versus, "vail", "BattleZone", "-1.71%", -1.72),
        Disagreement(versus, "ilde-no-bonus", "Krull", "-7.69%", -7.70),
        Disagreement(versus, "ilde-no-imitation", "Krull", "15.37%", 15.38),
        Disagreement(versus, "ilde", "BattleZone", "90.06%", 89.99),
        Disagreement(versus, "ilde", "average", "22.68%", 22.67),
    ]
    found = disagreements()
    assert [(d.table, d.row, d.column, d.printed) for d in found] == [
        (d.table, d.row, d.column, d.printed) for d in expected
    ]
    assert [round(d.recomputed, 2) for d in found] == [d.recomputed for d in expected]


def test_every_efficiency_is_an_evaluation_of_a_run_of_50_million_steps() -> None:
    efficiency = paper_table("efficiency")
    assert evaluation_steps(50_000_000)[:3] == (4096, 823_296, 1_642_496)
    assert len(evaluation_steps(50_000_000)) == 62
    steps = crossing_steps(efficiency)
    for row, entries in efficiency.rows.items():
        for task, value in entries.items():
            crossing = steps[row][task]
            assert (crossing is None) == (value.mean is None)
            assert crossing is None or value.agrees_with(crossing / 500_000)
    # ILDE passes the expert at its 6th evaluation on Qbert, at its 58th on StarGunner.
    assert steps["ilde"]["Qbert"] == (200 * 5 + 1) * 4096
    assert steps["ilde"]["StarGunner"] == (200 * 57 + 1) * 4096


def test_a_method_passes_the_expert_just_where_it_ends_above_it() -> None:
    above = {
        row: {task: ratio > 1 for task, ratio in games.items()} for row, games in ratios(paper_table("atari")).items()
    }
    for row, entries in paper_table("efficiency").rows.items():
        assert {task: value.mean is not None for task, value in entries.items()} == above[row]


def means(table: str, row: str) -> dict[str, float]:
    return {task: value.mean or 0.0 for task, value in paper_table(table).rows[row].items()}


def wins(table: str, one: str, other: str) -> int:
    theirs = means(table, other)
    return sum(mean > theirs[task] for task, mean in means(table, one).items())


def above_the_expert(table: str, row: str) -> int:
    experts = paper_table(table).demonstrators
    return sum(mean > (experts[task].mean or 0.0) for task, mean in means(table, row).items())


def highest_on_every_task(table: str, row: str) -> bool:
    return all(wins(table, row, other) == len(means(table, row)) for other in paper_table(table).rows if other != row)


def claims_by_the_numbers() -> dict[str, bool | None]:
    """The paper's sentences, in order, each by a few words of it and what its tables say."""
    earlier = improvements(paper_table("efficiency"))
    lambdas = [means("lambda", f"ilde/lambda-{weight}")["BeamRider"] for weight in (20, 10, 5, 2)]
    noisy = [mean for row in paper_table("noise").rows for mean in means("noise", row).values()]
    hype = [(abs(mean - means("hype", "hype")[task]), entry("hype", "hype", task)[1] or 0.0)
            for task, mean in means("hype", "hype-ilde").items()]  # fmt: skip
    one, full = (means("demo-lengths", f"expert/{row}") for row in ("one-life", "full"))
    return {
        "all of the 6 Atari games": above_the_expert("atari", "ilde") == 6 and wins("atari", "ilde", "giril") == 4,
        "5.33 times": round(ratio_totals(paper_table("atari"))[MEAN_RATIO]["ilde"], 2) == 5.33,
        "higher average returns": highest_on_every_task("atari", "ilde"),
        "in bold": means("atari", "ilde-no-curiosity")["StarGunner"] < means("atari", "giril")["StarGunner"],
        "in Krull": [task for task, ratio in means("normalised", "vail").items() if ratio > 1] == ["Krull"],
        "4.87 times": round(ratio_totals(paper_table("atari"))[MEAN_RATIO]["giril"], 2) == 4.87,
        "than GIRIL": sum(value > 0 for value in earlier["ilde"].values()) == 5,
        "90.06%": round(earlier["ilde"]["BattleZone"], 2) == 90.06,
        "decreasing λ": lambdas == sorted(lambdas),
        "noisy": min(noisy) > means("atari", "giril")["BeamRider"],
        "IQ-Learn": above_the_expert("iq-learn", "iq-learn") == 0,
        "HyPE-ILDE clearly": all(gap > spread for gap, spread in hype),
        "four continuous": highest_on_every_task("mujoco", "ilde"),
        "MuJoCo tasks": None if not paper_table("mujoco").demonstrators else True,
        "much less data": all(5 / 100 < one[task] / full[task] < 60 / 100 for task in one),
    }


def test_the_paper_claims_what_its_numbers_say_or_not() -> None:
    found = claims_by_the_numbers()
    assert len(found) == len(paper_claims())
    for claim, (words, holds) in zip(paper_claims(), found.items(), strict=True):
        assert words in claim.says
        assert claim.holds is holds, claim.says
        assert claim.table in TABLES
        assert claim.because


def test_hypotheses_and_motives_name_our_methods() -> None:
    assert [hypothesis.number for hypothesis in hypotheses()] == [1, 2, 3, 4]
    trials = [trial for hypothesis in hypotheses() for trial in hypothesis.trials]
    named = {*motivation(), *(trial.method for trial in trials), *(trial.against for trial in trials)}
    for method in named - {"demonstrator"}:
        assert find_method(method).name == method
    assert motivation()["vail"] == {"stability": "-", "exploration": "-", "imitation": "++"}


@each_table
def test_protocols_stand_side_by_side(table: PaperTable) -> None:
    assert table.protocol
    points = [point.point for point in table.protocol]
    assert len(set(points)) == len(points)
    assert all(point.paper and point.ours != point.paper for point in table.protocol)
