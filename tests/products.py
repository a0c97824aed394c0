"""A tiny run of each kind on disk: what watching and exporting start from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from toys import SMALL, TINY

from ilde import Imitator
from ilde.demos import Demonstrations
from ilde.demos.recording import Provenance, random_policy, record
from ilde.envs import make_envs, simulator_versions


def random_demos(env_id: str) -> Demonstrations:
    """One life or episode of a random policy, with the seed it can be acted out from."""
    envs, rng = make_envs(env_id, 1, 7), np.random.default_rng(0)
    facts = Provenance(
        recorder="random", greedy=False, simulator_versions=simulator_versions(), created="", command="", seed=7
    )
    act = random_policy(envs.action_space, rng)
    demos = record(envs, act, episodes=1, until="life", tremble=0.0, generator=rng, provenance=facts)
    envs.close()
    return demos


def saved_run(env_id: str, folder: Path, method: str = "ilde", steps: int = 16) -> Path:
    """A run of a few steps."""
    config = replace(TINY, num_envs=2, rollout_steps=8, rewards=replace(SMALL, background_steps=8))
    agent = Imitator(env_id, random_demos(env_id).prefix(0.1), method, config=config)
    path = agent.learn(steps).save(folder)
    agent.close()
    return path
