"""Every method that should beat random actions does so on a corridor, within seconds; the margins stand in the tests.

Random actions keep to the near end (mean place about 0.19 of 1), walking straight on gives 0.86. The demonstration is
one walk to the far end.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from toys import HYPE, TINY, corridor_trainer

from ilde.rewards.build import RewardConfig
from ilde.rewards.compose import ScaleConfig
from ilde.trainer import Trainer

ROLLOUTS, LAST = 25, 5


def late_places(trainer: Trainer) -> torch.Tensor:
    """Where the last rollouts went."""
    places = []
    for _ in range(ROLLOUTS):
        trainer.iterate()
        places.append(trainer.collector._buffers["next_obs"].clone())
    return torch.stack(places[-LAST:])


@pytest.fixture(scope="module")
def random_place() -> float:
    return float(late_places(corridor_trainer("random")).mean())


def test_random_actions_keep_to_the_near_end(random_place: float) -> None:
    assert 0.1 < random_place < 0.3


@pytest.mark.parametrize(
    ("method", "margin"),
    [
        ("expert", 0.5),
        ("gail", 0.4),
        ("vail", 0.4),
        ("ilde-no-curiosity", 0.4),
        ("ilde-no-bonus", 0.15),
        ("ilde-no-imitation", 0.15),
        ("giril", 0.15),
        ("ilde", 0.15),
    ],
)
def test_the_method_beats_random(method: str, margin: float, random_place: float) -> None:
    assert float(late_places(corridor_trainer(method)).mean()) > random_place + margin


@pytest.mark.parametrize(("method", "margin"), [("expert", 0.5), ("vail", 0.4), ("ilde", 0.15)])
def test_the_method_beats_random_with_continuous_actions(method: str, margin: float, random_place: float) -> None:
    assert float(late_places(corridor_trainer(method, continuous=True)).mean()) > random_place + margin


def hype_rewards() -> RewardConfig:
    """HyPE's discriminator, its logit unscaled."""
    return replace(TINY.rewards, discriminator=HYPE, scale=ScaleConfig(terms="novelty", total=False))


@pytest.mark.parametrize(("method", "margin"), [("sac", 0.4), ("hype", 0.4), ("hype-ilde", 0.15)])
def test_soft_actor_critic_beats_random(method: str, margin: float, random_place: float) -> None:
    changes = {} if method == "sac" else {"rewards": hype_rewards()}
    assert float(late_places(corridor_trainer(method, continuous=True, **changes)).mean()) > random_place + margin


@pytest.mark.parametrize(("continuous", "seed"), [(False, 0), (True, 0), (True, 1), (True, 2)])
def test_iq_learn_beats_random(continuous: bool, seed: int, random_place: float) -> None:
    trainer = corridor_trainer("iq-learn", continuous=continuous, seed=seed)
    assert float(late_places(trainer).mean()) > random_place + 0.4


def test_curiosity_about_dynamics_finds_what_the_demonstrator_never_did() -> None:
    # The demonstrator never went back, so walking into the near wall surprises most: its optimum, not a better walk.
    trainer = corridor_trainer("cdil")
    first = trainer.iterate()["reward/icm_raw"]
    last = [trainer.iterate()["reward/icm_raw"] for _ in range(ROLLOUTS)][-LAST:]
    assert min(last) > 1.5 * first


def test_an_alive_bonus_alone_leads_nowhere(random_place: float) -> None:
    assert float(late_places(corridor_trainer("constant")).mean()) < random_place + 0.1


def visited(method: str) -> int:
    """How many of the 21 places of a finer corridor the last rollouts saw."""
    return len(late_places(corridor_trainer(method, stride=0.05)).mul(20).round().unique())


def places_in_a_walk(method: str, seed: int) -> float:
    """How many of the 21 places of a finer corridor one environment sees in a rollout, on average over the last."""
    places = late_places(corridor_trainer(method, stride=0.05, seed=seed)).mul(20).round().squeeze(-1)
    walks = places.permute(0, 2, 1).flatten(0, 1)
    return sum(len(walk.unique()) for walk in walks) / len(walks)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_elliptical_bonus_alone_covers_more_states_within_a_walk_than_random_actions(seed: int) -> None:
    assert places_in_a_walk("e3b", seed) > places_in_a_walk("random", seed) + 3


def test_state_entropy_alone_covers_more_states_than_random_actions() -> None:
    assert visited("entropy") >= 20
    assert visited("random") <= 14
