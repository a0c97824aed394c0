"""Run folders become records, and damaged ones a line; records become a file and come back."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from made_runs import STEPS, UPDATES, make_run

from ilde.config import QUICK
from ilde.data import UserError
from ilde.methods import METHODS, Method
from ilde.reports.gathering import find_runs, gather
from ilde.reports.outcome_files import load_outcomes, save_outcomes
from ilde.reports.outcomes import FinalScore, Outcome, last_points, read_outcome, spelled_reward
from ilde.reports.thinned import POINTS, Curve, curve


def test_a_run_is_read_as_it_was(tmp_path: Path) -> None:
    config = replace(QUICK, env="Hopper-v5", steps=80_000, ppo=replace(QUICK.ppo, learning_rate=1e-3), threads=1)
    outcome = read_outcome(make_run(tmp_path / "a", seed=3, score=1000.0, config=config), "a")
    assert (outcome.task, outcome.method, outcome.seed, outcome.state) == ("Hopper-v5", "ilde", 3, "finished")
    assert outcome.reward == "vail + 10*giril + entropy"
    assert (outcome.preset, outcome.variant) == ("quick", ("ppo.learning_rate=0.001",))
    assert (outcome.env_steps, outcome.planned_steps) == (UPDATES * STEPS, 80_000)
    assert (outcome.demos, outcome.fraction, outcome.demonstrator) == ("halfcheetah-v5/weak-v0", 0.5, 900.0)
    assert (outcome.greedy, outcome.sampled) == (FinalScore(1000.0, 10.0, 20), FinalScore(500.0, 10.0, 20))
    assert outcome.steps_per_second == 1234.6
    assert list(outcome.terms) == ["vail", "giril", "entropy"]
    assert outcome.terms["giril"] == Curve(
        tuple(range(STEPS, (UPDATES + 1) * STEPS, STEPS)), tuple(float(f"{10 / (u + 1):.5g}") for u in range(1, 21))
    )
    assert outcome.training.env_steps[0] == 3 * STEPS


def test_a_run_without_demonstrations_has_no_demonstrator(tmp_path: Path) -> None:
    outcome = read_outcome(make_run(tmp_path / "a", "constant"), "a")
    assert (outcome.demos, outcome.fraction, outcome.demonstrator) == (None, 1.0, None)


@pytest.mark.parametrize("score", [2e301, float("inf")])
def test_returns_beyond_all_numbers_are_one_clear_reason(tmp_path: Path, score: float) -> None:
    run = make_run(tmp_path / "a", score=score, evaluations=(score,) * 4)
    with pytest.raises(UserError) as caught:
        read_outcome(run, "a")
    reason = "its returns are too large to be compared; let the environment pay less, and train anew"
    assert str(caught.value) == f"{run}: {reason}"
    assert last_points([{"mean": None}] * 4) is None


def test_no_folder_of_the_machine_is_told(tmp_path: Path) -> None:
    config = replace(QUICK, demos="/home/somebody/demos/mine.npz:0.1")
    outcome = read_outcome(make_run(tmp_path / "a", config=config), "a")
    assert (outcome.demos, outcome.fraction) == ("mine.npz", 0.1)
    assert outcome.provenance["command"] == ["ilde", "train", "--out=a"]
    assert "somebody" not in str(outcome)


def test_the_last_points_are_the_mean_of_four_evaluations_along_the_way(tmp_path: Path) -> None:
    outcome = read_outcome(make_run(tmp_path / "a", evaluations=(9, 1, 2, 3, 6)), "a")
    assert outcome.last_points == 3
    assert outcome.evaluations == Curve((STEPS, 2 * STEPS, 3 * STEPS, 4 * STEPS, 5 * STEPS), (9, 1, 2, 3, 6))
    assert last_points([{"mean": 1.0, "final": False}] * 3) is None


def test_evaluations_that_were_cut_short_make_no_curve(tmp_path: Path) -> None:
    path = make_run(tmp_path / "a", evaluations=(9, 1, 2, 3, 6))
    journal = path / "evaluations.jsonl"
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    first, second, *_ = (row for row in rows if not row["final"])
    # The first of five is not among the last four, the second is.
    for cut, last_four in ((first, 3), (second, None)):
        journal.write_text("".join(json.dumps(row | {"capped": int(row is cut)}) + "\n" for row in rows))
        outcome = read_outcome(path, "a")
        assert (outcome.evaluations, outcome.last_points) == (Curve(), last_four)
    assert outcome.greedy is not None
    assert outcome.greedy.capped == 0
    last = rows[-1]
    journal.write_text("".join(json.dumps(row | {"capped": 2 * (row is last)}) + "\n" for row in rows))
    outcome = read_outcome(path, "a")
    assert outcome.last_points == 3
    assert [final and final.capped for final in (outcome.greedy, outcome.sampled)].count(2) == 1


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("vail+2*giril +entropy", "vail + 2*giril + entropy"), ("1*entropy", "entropy"), ("1e-1*vail", "0.1*vail")],
)
def test_equal_rewards_have_one_spelling(tmp_path: Path, typed: str, kept: str) -> None:
    assert read_outcome(make_run(tmp_path / "a", config=replace(QUICK, reward=typed)), "a").reward == kept


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_rewards_of_methods_are_spelled_so(method: Method) -> None:
    assert spelled_reward(method.reward) == method.reward


def test_a_long_curve_is_thinned_and_keeps_its_ends() -> None:
    rows = [{"env_steps": k, "x": k / 3} for k in range(1000)]
    thin = curve(rows, "x")
    assert len(thin.values) == POINTS
    assert (thin.env_steps[0], thin.env_steps[-1], thin.values[-1]) == (0, 999, 333.0)
    assert {after - before for before, after in pairwise(thin.env_steps)} == {10, 11}


def test_values_that_were_not_finite_are_left_out() -> None:
    assert curve([{"env_steps": 1, "x": None}, {"env_steps": 2, "x": 1.0}], "x") == Curve((2,), (1.0,))


def test_a_dip_between_the_points_that_a_record_keeps_is_in_it(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    rows = [{"env_steps": row, "score/raw": 5.0 if row == 100 else 1000.0} for row in range(250)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = read_outcome(run, "a")
    # The 40th and the 41st point are 39 and 40 times 249 / 99, rounded.
    assert outcome.training.env_steps[39:41] == outcome.lows.env_steps[39:41] == (98, 101)
    assert (min(outcome.training.values), outcome.lows.values.index(5.0)) == (1000.0, 40)


def test_a_run_under_way_has_come_as_far_as_its_journal(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", score=None, state="running")
    status = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(json.dumps(status | {"env_steps": 0}))
    assert read_outcome(run, "a").env_steps == UPDATES * STEPS


def test_settings_that_came_or_went_since_are_no_variant(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    config = json.loads((run / "config.json").read_text())
    del config["iq"], config["rewards"]["scale"]
    config["ppo"]["forgotten"] = 7
    (run / "config.json").write_text(json.dumps(config))
    assert read_outcome(run, "a").variant == ()


def test_settings_of_another_learner_are_no_variant(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    config = json.loads((run / "config.json").read_text())
    config["iq"]["value_term"], config["sac"]["hidden"], config["ppo"]["hidden"] = "initial", 7, 7
    (run / "config.json").write_text(json.dumps(config))
    assert read_outcome(run, "a").variant == ("ppo.hidden=7",)


def test_runs_are_found_at_any_depth_each_once(tmp_path: Path) -> None:
    one, two = make_run(tmp_path / "x" / "y" / "one"), make_run(tmp_path / "two", seed=1)
    (one / "inner").mkdir()
    (one / "inner" / "config.json").write_text("{}")
    assert find_runs(tmp_path) == [two, one]
    gathered = gather([tmp_path, tmp_path / "x", two])
    assert {outcome.run for outcome in gathered.outcomes} == {f"{tmp_path.name}/two", f"{tmp_path.name}/x/y/one"}
    assert gathered.folders[f"{tmp_path.name}/two"] == two


def test_runs_are_found_below_a_foreign_configuration(tmp_path: Path) -> None:
    run = make_run(tmp_path / "grid" / "run")
    (tmp_path / "grid" / "config.json").write_text("{}")
    gathered = gather([tmp_path / "grid"])
    assert list(gathered.folders.values()) == [run]
    assert list(gathered.skipped) == ["grid"]


def test_folders_of_one_name_stay_apart(tmp_path: Path) -> None:
    one, two = make_run(tmp_path / "a" / "run"), make_run(tmp_path / "b" / "run")
    assert gather([one, two]).folders == {"run": one, "run (2)": two}


def test_a_run_that_a_file_has_kept_is_not_counted_again(tmp_path: Path) -> None:
    for seed in (0, 1):
        make_run(tmp_path / "grid" / str(seed), seed=seed, score=1000.0)
    kept = tmp_path / "kept.json"
    save_outcomes(gather([tmp_path / "grid"]).outcomes[:1], kept)
    gathered = gather([kept, tmp_path / "grid"])
    assert [outcome.seed for outcome in gathered.outcomes] == [0, 1]
    assert len(gathered.folders) == 2


DAMAGE = {
    "config.json": ("{", '["a"]', "{}", '{"method": "no-such", "env": "a"}', '{"method": "ilde", "reward": 7}'),
    "status.json": ("", '{"state": 1}', '{"state":"finished","env_steps":"x","message":"","updated":""}'),
    "provenance.json": ("[]", '{"demonstrator": "much"}', '{"demos_hash": 3}'),
    "metrics.jsonl": ("{}\n", '{"env_steps": 1, "score/raw": "x"}\n', '{"env_steps": 1, "score/raw": 1e999}\n'),
    "evaluations.jsonl": ('{"env_steps": 1, "final": true}\n', '{"env_steps": 1, "final": false, "mean": []}\n'),
    "timing.jsonl": ('{"env_steps": 1}\n',),
}


@pytest.mark.parametrize(("name", "content"), [(name, text) for name, texts in DAMAGE.items() for text in texts])
def test_a_damaged_or_foreign_folder_is_skipped_with_its_reason(tmp_path: Path, name: str, content: str) -> None:
    make_run(tmp_path / "good")
    (make_run(tmp_path / "bad", seed=1) / name).write_text(content)
    gathered = gather([tmp_path])
    assert [outcome.run for outcome in gathered.outcomes] == [f"{tmp_path.name}/good"]
    (bad, reason), *_ = gathered.skipped.items()
    assert bad == f"{tmp_path.name}/bad"
    assert reason
    assert str(tmp_path) not in reason
    assert "\n" not in reason


def test_nothing_to_report_is_a_mistake(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match=str(tmp_path)):
            gather([place])


def gathered_three(tmp_path: Path) -> tuple[Outcome, ...]:
    make_run(tmp_path / "b", "vail", 1, 1 / 3, evaluations=(1, 2))
    make_run(tmp_path / "a", "ilde", 2)
    make_run(tmp_path / "c", "random", 0, None, state="failed")
    return gather([tmp_path]).outcomes


def test_outcomes_come_back_from_their_file(tmp_path: Path) -> None:
    outcomes = gathered_three(tmp_path / "runs")
    save_outcomes(outcomes, tmp_path / "new" / "o.json")
    assert load_outcomes(tmp_path / "new" / "o.json") == outcomes
    assert gather([tmp_path / "new" / "o.json"]).outcomes == outcomes


def test_how_episodes_ended_is_kept_where_a_run_tells_it(tmp_path: Path) -> None:
    path = make_run(tmp_path / "runs" / "a")
    journal = path / "evaluations.jsonl"
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    kept = {"truncated": 7, "length": 1 / 3, "kinds": 9, "lengths": [1] * 20}
    journal.write_text("".join(json.dumps(row | kept) + "\n" for row in rows))
    (outcome,) = gather([tmp_path / "runs"]).outcomes
    assert outcome.greedy == FinalScore(1000.0, 10.0, 20, truncated=7, length=0.33333, kinds=9)
    save_outcomes([outcome], tmp_path / "o.json")
    assert load_outcomes(tmp_path / "o.json") == (outcome,)
    del kept["lengths"]  # the count of kinds from before lengths were kept took late starts for other games
    journal.write_text("".join(json.dumps(row | kept) + "\n" for row in rows))
    (before,) = gather([tmp_path / "runs"]).outcomes
    assert before.greedy == replace(outcome.greedy, kinds=None)


def test_a_file_from_before_is_written_again_byte_for_byte(tmp_path: Path) -> None:
    kept = Path(__file__).parents[2] / "results" / "baselines.outcomes.json"
    outcomes = load_outcomes(kept)
    # All but IQ-Learn's runs were kept before these were known.
    known = {
        (o.method == "iq-learn", o.greedy.truncated is None, o.greedy.length is None) for o in outcomes if o.greedy
    }
    assert known == {(True, False, False), (False, True, True)}
    save_outcomes(outcomes, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == kept.read_bytes()


def test_the_file_does_not_depend_on_the_order_and_is_small(tmp_path: Path) -> None:
    outcomes = gathered_three(tmp_path / "runs")
    save_outcomes(outcomes, tmp_path / "one.json")
    save_outcomes(reversed(load_outcomes(tmp_path / "one.json")), tmp_path / "two.json")
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert (tmp_path / "one.json").stat().st_size < 3 * 8000


def test_a_foreign_file_is_refused_in_one_line(tmp_path: Path) -> None:
    save_outcomes(gathered_three(tmp_path / "runs"), tmp_path / "o.json")
    good = (tmp_path / "o.json").read_text()
    entry = json.loads(good)["outcomes"][0]
    changed = [
        entry | change for change in ({"seed": "1"}, {"method": "x"}, {"reward": "x y"}, {"extra": 1}, {"terms": []})
    ]
    documents = [json.dumps({"format": "ilde-outcomes-1", "outcomes": [bad]}) for bad in changed]
    documents += ["", "[]", "{}", '{"format": "other", "outcomes": []}', good.replace("1000.0", "NaN"), "[" * 100_000]
    documents += [good.replace("1000.0", "1e999")]
    for number, document in enumerate(documents):
        path = tmp_path / f"{number}.json"
        path.write_text(document)
        with pytest.raises(UserError) as caught:
            load_outcomes(path)
        assert str(caught.value).startswith(f"{path}: not a file of outcomes")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "value", "said"),
    [
        ("env_steps", 10**400, "nobody can draw"),
        ("demonstrator", 1e308, "nobody can draw"),
        ("demonstrator", 1e-310, "too small for ratios"),
        ("preset", "nosuch", "unknown preset 'nosuch'"),
    ],
)
def test_a_record_nothing_can_be_made_of_is_refused_with_its_file(
    tmp_path: Path, part: str, value: object, said: str
) -> None:
    outcome = read_outcome(make_run(tmp_path / "a"), "a")
    save_outcomes([outcome], tmp_path / "kept.json")
    document = json.loads((tmp_path / "kept.json").read_text())
    document["outcomes"][0][part] = value
    (tmp_path / "kept.json").write_text(json.dumps(document))
    with pytest.raises(UserError, match=rf"kept\.json: not a file of outcomes .*{said}"):
        load_outcomes(tmp_path / "kept.json")
