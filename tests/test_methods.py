"""The table of methods, row by row against the paper's ablations and the controls."""

from __future__ import annotations

import pytest
import torch
from toys import Corridor, corridor_demos

from ilde.config import RunConfig
from ilde.data import UserError
from ilde.envs import make_envs
from ilde.methods import METHODS, Method, find_method
from ilde.prepare import prepare_demos
from ilde.rewards.expression import needs_demos, parse_expression


def terms(name: str) -> dict[str, float]:
    return {term.name: term.weight for term in parse_expression(find_method(name).reward)}


def test_the_rows_of_the_paper() -> None:
    assert terms("ilde") == {"vail": 1.0, "giril": 10.0, "entropy": 1.0}
    assert terms("ilde-no-curiosity") == {"vail": 1.0, "entropy": 1.0}
    assert terms("ilde-no-bonus") == {"vail": 1.0, "giril": 10.0}
    assert terms("ilde-no-imitation") == {"giril": 10.0, "entropy": 1.0}
    assert [terms(name) for name in ("gail", "vail", "giril")] == [{"gail": 1.0}, {"vail": 1.0}, {"giril": 1.0}]
    assert terms("expert") == {"env": 1.0}


def test_the_rows_that_replay() -> None:
    assert {row.name: row.learner for row in METHODS if row.replays} == {
        "iq-learn": "iq-learn", "hype": "sac", "hype-ilde": "sac", "sac": "sac"
    }  # fmt: skip
    assert terms("hype") == {"gail": 1.0}
    assert terms("hype-ilde") == {"gail": 1.0, "giril": 10.0, "entropy": 1.0}


def test_the_controls_stand_beside_them() -> None:
    assert {row.name for row in METHODS if row.control} == {"entropy", "random", "constant", "shuffled", "wrong-demos"}
    assert terms("shuffled") == terms("wrong-demos") == terms("ilde")
    assert find_method("random").learner == "none"


@pytest.mark.parametrize("row", METHODS, ids=lambda row: row.name)
def test_a_row_uses_demonstrations_just_where_a_term_needs_them(row: Method) -> None:
    imitates = row.learner in ("bc", "iq-learn")
    assert (row.demos != "unused") == (imitates or needs_demos(parse_expression(row.reward)))
    assert find_method(row.name) is row
    assert ("env" in row.reward.split()) == (row.name in ("expert", "sac"))


def test_names_are_unique_and_the_default_is_one_of_them() -> None:
    names = [row.name for row in METHODS]
    assert len(set(names)) == len(names)
    assert RunConfig().method in names


def test_an_unknown_method_gets_a_hint() -> None:
    with pytest.raises(UserError, match=r"unknown method 'idle'; did you mean ilde\?"):
        find_method("idle")
    with pytest.raises(UserError, match="`ilde methods` lists them"):
        find_method("xyzzy")


def test_shuffled_demonstrations_hold_the_same_states_and_actions_torn_apart() -> None:
    envs, demos = make_envs(Corridor, 2, 0), corridor_demos()
    given, torn = (prepare_demos(demos, use, envs, seed=0) for use in ("given", "shuffled"))
    assert given is not None
    assert torn is not None
    for name in ("obs", "action", "next_obs"):
        one, other = getattr(given, name), getattr(torn, name)
        assert sorted(one.flatten().tolist()) == sorted(other.flatten().tolist())
        assert one.tolist() != other.tolist()
    assert (torn.next_obs - torn.obs).abs().max() > 0.15 > (given.next_obs - given.obs).abs().max()


def test_wrong_demonstrations_are_a_random_walk_of_the_same_length_without_a_reward() -> None:
    envs, demos = make_envs(Corridor, 2, 0), corridor_demos()
    wrong = prepare_demos(demos, "random-policy", envs, seed=0)
    assert wrong is not None
    assert len(wrong) == demos.num_transitions == 30
    assert set(wrong.action.tolist()) == {0, 1, 2}
    assert wrong.env_reward.isnan().all()
    assert (wrong.next_obs[:-1] == wrong.obs[1:]).all()


def test_a_long_random_walk_is_the_same_whatever_its_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = []
    for chunk in (30, 7):
        monkeypatch.setattr("ilde.prepare.WALK_CHUNK", chunk)
        walks.append(prepare_demos(corridor_demos(), "random-policy", make_envs(Corridor, 2, 0), seed=0))
    whole, pieces = walks
    assert whole is not None
    assert pieces is not None
    assert all(torch.equal(getattr(whole, name), getattr(pieces, name)) for name in ("obs", "action", "next_obs"))


def test_what_other_methods_read_is_foreign() -> None:
    assert set(find_method("ilde").foreign_settings) == {"cloning.", "sac.", "iq."}
    assert set(find_method("bc").foreign_settings) == {"sac.", "iq.", "rewards."}
    assert set(find_method("iq-learn").foreign_settings) == {"ppo.", "cloning.", "sac.", "rewards."}
    assert set(find_method("random").foreign_settings) == {"ppo.", "cloning.", "sac.", "iq.", "rewards."}
