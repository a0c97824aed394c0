"""Acting for a group: what is seen, decided and kept, step by step or captured, plain or compiled."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from toys import CPU, generator

from ilde.acting import Actor, decider
from ilde.nets.policy import ActorCritic, Decision, UniformPolicy

FRAMES = gym.spaces.Box(0, 255, (3, 36, 36), np.uint8)
ACTIONS = gym.spaces.Discrete(5), gym.spaces.Box(-1.0, 1.0, (2,), np.float32)


def brightest(obs: torch.Tensor) -> Decision:
    """Does what its newest frame says, and tells its oldest as a value."""
    return Decision(obs[:, -1, 0, 0].long(), torch.zeros(len(obs), device=obs.device), obs[:, 0, 0, 0].float())


def stack(*shades: int) -> np.ndarray:
    """One environment's frames, each of one shade."""
    return np.stack([np.full((2, 2), shade, dtype=np.uint8) for shade in shades])


def actor(
    rows: int, first: np.ndarray, device: torch.device = CPU
) -> tuple[Actor, torch.Tensor, dict[str, torch.Tensor]]:
    seen = torch.zeros((rows + 1, *first.shape), dtype=torch.uint8, device=device)
    kinds = {"action": torch.int64, "log_prob": torch.float32, "value": torch.float32}
    kept = {name: torch.zeros((rows, len(first)), dtype=kind, device=device) for name, kind in kinds.items()}
    draws = torch.Generator(device).manual_seed(0)
    return Actor(brightest, first, seen, kept, frames=True, generator=draws), seen, kept


def test_frames_follow_each_other_until_a_game_begins_anew() -> None:
    acting, seen, kept = actor(2, np.stack([stack(1, 2, 3), stack(4, 5, 6)]))
    acting.begin()
    assert acting.finish().tolist() == [3, 6]
    acting.show(np.stack([stack(2, 3, 7), stack(90, 91, 92)]), fresh=[1])
    acting.begin()
    assert acting.finish().tolist() == [7, 92]
    acting.show(np.stack([stack(3, 7, 8), stack(91, 92, 93)]))
    acting.stop()
    shades = seen[..., 0, 0].tolist()
    assert shades == [[[1, 2, 3], [4, 5, 6]], [[2, 3, 7], [90, 91, 92]], [[3, 7, 8], [91, 92, 93]]]
    assert kept["action"].tolist() == [[3, 6], [7, 92]]
    assert kept["value"].tolist() == [[1.0, 4.0], [2.0, 90.0]]


def test_after_the_last_row_it_goes_on_from_the_first_with_what_is_seen() -> None:
    acting, seen, kept = actor(1, np.stack([stack(1, 2, 3)]))
    acting.begin()
    acting.show(np.stack([stack(2, 3, 4)]))
    acting.stop()
    acting.restart()
    acting.begin()
    assert seen[0, 0, :, 0, 0].tolist() == [2, 3, 4]
    assert kept["action"].tolist() == [[4]]
    acting.see(np.stack([stack(7, 8, 9)]))
    acting.restart()
    acting.begin()
    assert seen[0, 0, :, 0, 0].tolist() == [7, 8, 9]


def test_after_a_rollout_that_broke_off_what_is_seen_has_not_moved() -> None:
    acting, seen, _ = actor(3, np.stack([stack(1, 2, 3)]))
    acting.begin()
    acting.show(np.stack([stack(2, 3, 4)]))
    acting.begin()  # and nothing comes of it
    acting.restart()
    acting.restart()
    acting.begin()
    assert seen[0, 0, :, 0, 0].tolist() == [2, 3, 4]
    acting.show(np.stack([stack(3, 4, 5)]))
    acting.begin()
    assert seen[1, 0, :, 0, 0].tolist() == [3, 4, 5]


def test_a_decision_that_fails_has_moved_nothing() -> None:
    def failing(obs: torch.Tensor) -> Decision:
        raise KeyboardInterrupt

    acting, seen, _ = actor(3, np.stack([stack(1, 2, 3)]))
    acting.begin()
    acting.show(np.stack([stack(2, 3, 4)]))
    acting.decide = failing
    with pytest.raises(KeyboardInterrupt):
        acting.begin()
    acting.decide = brightest
    acting.restart()
    acting.begin()
    assert seen[0, 0, :, 0, 0].tolist() == [2, 3, 4]


def test_numbers_are_kept_in_the_type_of_their_place() -> None:
    def sloppy(obs: torch.Tensor) -> Decision:
        return Decision(obs[:, -1, 0, 0].int(), torch.zeros(len(obs), dtype=torch.float64), torch.ones(len(obs)))

    acting, _, kept = actor(1, np.stack([stack(1, 2, 3)]))
    acting.decide = sloppy
    acting.begin()
    assert acting.finish().tolist() == [3]
    assert kept["action"].dtype == torch.int64


@pytest.mark.parametrize("actions", ACTIONS, ids=["discrete", "continuous"])
def test_a_policy_chooses_by_its_noise_what_it_would_do_by_chance(actions: gym.Space[object]) -> None:
    policy = ActorCritic(FRAMES, actions, 8, generator())
    obs = torch.randint(0, 256, (6, 3, 36, 36), dtype=torch.uint8, generator=generator(1))
    by_chance = policy.act(obs, generator(2))
    for fuse in (False, True):
        chosen = decider(policy, generator(2), CPU, fuse=fuse)(obs)
        assert all(torch.equal(one, other) for one, other in zip(chosen, by_chance, strict=True))
    assert not torch.equal(decider(policy, generator(3), CPU, fuse=True)(obs).action, by_chance.action)


def test_what_is_no_network_acts_as_it_does() -> None:
    uniform = UniformPolicy(gym.spaces.Discrete(4))
    obs = torch.zeros(9, 3)
    chosen = decider(uniform, generator(2), CPU, fuse=True)(obs)
    assert torch.equal(chosen.action, uniform.act(obs, generator(2)).action)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_compiled_choices_are_the_plain_ones() -> None:
    gpu = torch.device("cuda")
    policy = ActorCritic(FRAMES, ACTIONS[0], 8, generator()).to(gpu)
    obs = torch.randint(0, 256, (6, 3, 36, 36), dtype=torch.uint8, generator=generator(1)).to(gpu)
    draws = [torch.Generator(gpu).manual_seed(2) for _ in range(2)]
    compiled, plain = (decider(policy, g, gpu, fuse=fuse)(obs) for g, fuse in zip(draws, (True, False), strict=True))
    assert torch.equal(compiled.action, plain.action)
    torch.testing.assert_close(compiled.log_prob, plain.log_prob, rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(compiled.value, plain.value, rtol=1e-2, atol=1e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_captured_steps_keep_what_plain_ones_would() -> None:
    rows, shades = 12, np.random.default_rng(0).integers(0, 200, (15, 2))
    plain = actor(rows, np.stack([stack(*shades[:3, env]) for env in range(2)]))
    captured = actor(rows, np.stack([stack(*shades[:3, env]) for env in range(2)]), device=torch.device("cuda"))
    for acting, _, _ in (plain, captured):
        for t in range(rows):
            acting.begin()
            acting.finish()
            acting.show(np.stack([stack(*shades[t + 1 : t + 4, env]) for env in range(2)]))
        acting.stop()
    assert torch.equal(captured[1].cpu(), plain[1])
    for name, value in plain[2].items():
        assert torch.equal(captured[2][name].cpu(), value)
