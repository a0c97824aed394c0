"""Evaluation on the true reward: whole episodes, with a quota for each environment fixed before play.

Waiting for the first N finishers would favour short games; here every environment plays the episodes it was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from ilde.envs.base import EnvBatch
from ilde.nets.policy import Policy
from ilde.patience import now_and_then

DELAY = 8
"""Steps by which episodes of one kind may differ: an Atari game starts up to 30 frames late, four to a step."""


@dataclass(frozen=True)
class Evaluation:
    """True returns of whole episodes, in the order of the environments that played them."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    greedy: bool
    capped: int = 0
    """Episodes cut by `max_steps` rather than played to their end."""
    truncated: int = 0
    """Whole episodes that the environment's own time limit ended."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def std(self) -> float:
        """Standard deviation over episodes."""
        return float(np.std(self.returns, ddof=1)) if len(self.returns) > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95% confidence interval of the mean."""
        return mean_interval(self.returns)

    @property
    def kinds(self) -> int:
        """Kinds of episodes, by return and length: a greedy policy may play one and the same game again and again."""
        found = 0
        shortest: tuple[float, float] = (math.nan, math.nan)
        for total, length in sorted(zip(self.returns, self.lengths, strict=True)):
            if total != shortest[0] or length > shortest[1] + DELAY:
                found, shortest = found + 1, (total, length)
        return found

    def summary(self, demonstrator: float | None = None) -> dict[str, Any]:
        """What `ilde eval --json` prints."""
        ratio = return_ratio(self.mean, demonstrator)
        return {
            "mean": self.mean,
            "std": self.std,
            "interval": list(self.interval) if len(self.returns) > 1 else [None, None],
            "episodes": len(self.returns),
            "kinds": self.kinds,
            "length": float(np.mean(self.lengths)),
            "capped": self.capped,
            "truncated": self.truncated,
            "greedy": self.greedy,
            "demonstrator": demonstrator,
            "ratio": ratio,
        }

    def row(self, demonstrator: float | None, *, final: bool) -> dict[str, Any]:
        """What a run's journal keeps of it."""
        every = {"returns": list(self.returns), "lengths": list(self.lengths)}
        return self.summary(demonstrator) | every | {"final": final}


def return_ratio(ours: float, demonstrator: float | None) -> float | None:
    """Our return over the demonstrator's; None where that is not positive, and a ratio would order policies wrongly."""
    return ours / demonstrator if demonstrator is not None and demonstrator > 0 else None


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean; infinite for a single value, which says nothing of spread."""
    if len(values) < 2:
        return (-math.inf, math.inf)
    spread = stats.sem(values) * stats.t.ppf(0.5 + level / 2, len(values) - 1)
    return (float(np.mean(values) - spread), float(np.mean(values) + spread))


class StoppedError(Exception):
    """An evaluation was asked to stop before its last episode; what it had played says nothing of the policy."""


def never() -> bool:
    """Whether to stop, where nobody asks."""
    return False


def quotas(episodes: int, num_envs: int) -> list[int]:
    """How many episodes each environment plays."""
    return [episodes // num_envs + (env < episodes % num_envs) for env in range(num_envs)]


def evaluate(
    envs: EnvBatch,
    policy: Policy,
    *,
    episodes: int,
    generator: torch.Generator,
    greedy: bool = True,
    max_steps: int | None = None,
    stop: Callable[[], bool] = never,
) -> Evaluation:
    """Play whole episodes; an episode longer than `max_steps` counts with the return it had reached.

    Raises `StoppedError` as soon as `stop` says so.
    """
    left = quotas(episodes, envs.num_envs)
    played: list[list[tuple[float, int]]] = [[] for _ in left]
    running, age, capped, truncated = np.zeros(envs.num_envs), np.zeros(envs.num_envs, np.int64), 0, 0
    obs, say = envs.reset(), now_and_then()

    def how_far() -> str:
        return _how_far(sum(map(len, played)), episodes, int(age.max()), max_steps)

    while any(left):
        if stop():
            raise StoppedError
        say(how_far)
        observations = torch.from_numpy(np.asarray(obs)).to(generator.device)
        step = envs.step(policy.act(observations, generator, greedy=greedy).action.cpu().numpy())
        obs = step.obs
        running += step.reward
        age += 1
        finished = {score.env: (score.total, score.length) for score in step.scores}
        for env in range(envs.num_envs):
            cut = max_steps is not None and int(age[env]) >= max_steps and env not in finished
            if left[env] and (cut or env in finished):
                played[env].append(finished.get(env, (float(running[env]), int(age[env]))))
                # An episode cut short cannot be restarted alone, so its environment plays no further one.
                left[env] = 0 if cut else left[env] - 1
                capped += cut
                truncated += not cut and bool(step.truncated[env])
            if env in finished:
                running[env], age[env] = 0.0, 0
    results = [result for env in played for result in env]
    return Evaluation(tuple(r for r, _ in results), tuple(n for _, n in results), greedy, capped, truncated)


def _how_far(done: int, episodes: int, longest: int, max_steps: int | None) -> str:
    far = f"evaluation: {done} of {episodes} episodes, the longest open one {longest:,} steps old"
    # Nothing tells an episode that has no end from one that is long.
    endless = not done and max_steps is None
    return f"{far}; one that never ends needs gymnasium's TimeLimit, or a largest number of steps" if endless else far
