"""Atari games on ale-py's native vector environment: whole games, cut into training episodes at lost lives.

Frames, action sets and rewards are fixed here for training, evaluation, recording and replay alike: four stacked 84x84
grey frames, frame skip 4, minimal actions, no sticky actions, raw rewards. The simulator cannot save its state, and a
seeded reset reloads the ROM (0.1 s), so a copy is seeded anew only once in a while; restoring replays since then.
"""

from __future__ import annotations

import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any

import ale_py
import gymnasium as gym
import numpy as np
from ale_py.vector_env import AtariVectorEnv
from gymnasium.vector import AutoresetMode

from ilde.envs.base import Array, State, Step
from ilde.envs.cores import usable_cores
from ilde.envs.course import Course
from ilde.envs.names import atari_game, canonical_env_id
from ilde.envs.replay import NotReproducible, same_bits
from ilde.envs.spaces import checked_action

_logger = logging.getLogger(__name__)

RESEED_AFTER = 32_768
"""Steps of a copy between seedings: each reloads the ROM, so few cost little; a restore replays at most about this."""
MAX_FRAMES_PER_GAME = 108_000
FRAMES = 4
"""Frames of an observation."""


NICENESS = 5
"""How much the games' threads stand back, where threads can: whoever chooses the next actions must find a core free."""


def _stand_back() -> None:
    if sys.platform == "linux":  # where a thread has a priority of its own, and those it starts inherit it
        with suppress(OSError):
            os.nice(NICENESS)


def _native_env(game: str, num_envs: int, num_threads: int) -> Any:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return AtariVectorEnv(
        game,
        num_envs,
        num_threads=num_threads,
        max_num_frames_per_episode=MAX_FRAMES_PER_GAME,
        repeat_action_probability=0.0,
        full_action_space=False,
        frameskip=4,
        stack_num=FRAMES,
        noop_max=30,
        use_fire_reset=True,
        episodic_life=False,
        life_loss_info=False,
        reward_clipping=False,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


def _threads_of_each(groups: int, games: int) -> int:
    """One for each core in all; up to twice that where each has two of its group's games: some wait, others go on."""
    cores = len(usable_cores())
    fewest, most = -(-cores // groups), -(-2 * cores // groups)
    return max(fewest, min(most, cores, games // 2))


def _side_by_side(steps: list[Step]) -> Step:
    arrays = ("obs", "next_obs", "reward", "terminated", "truncated")
    joined = {name: np.concatenate([getattr(step, name) for step in steps]) for name in arrays}
    return Step(**joined, scores=tuple(score for step in steps for score in step.scores))


class AtariBatch:
    """N copies of one Atari game; a training episode ends at a lost life, a `Score` comes only with a whole game.

    Where a life was lost the game plays on: `Step.next_obs` is then simply `Step.obs`.

    Args:
        game_or_env_id: `beam_rider`, `BeamRider` and `ALE/BeamRider-v5` all name the game only.
        num_envs: how many copies.
        seed: of the run; the k-th seeding of copy i is `episode_seed(seed, i, k)`.
        num_threads: simulator threads of each group; None takes what keeps the cores busy. No result changes.
        reseed_after: a copy is seeded anew at its first game over after this many steps, which bounds the replay.
        num_groups: parts that step in the background one after another. It does not change any game either.
    """

    def __init__(
        self,
        game_or_env_id: str,
        num_envs: int,
        seed: int,
        *,
        num_threads: int | None = None,
        reseed_after: int = RESEED_AFTER,
        num_groups: int = 1,
    ) -> None:
        self.env_id = canonical_env_id(game_or_env_id)
        self.num_envs = num_envs
        self.frames_shown = FRAMES
        self.resume_mode = "exact"
        bounds = np.linspace(0, num_envs, min(num_groups, num_envs) + 1).astype(int).tolist()
        self.groups: tuple[slice, ...] = tuple(slice(first, last) for first, last in pairwise(bounds))
        game, threads = atari_game(self.env_id), num_threads or _threads_of_each(len(self.groups), bounds[1])
        with ThreadPoolExecutor(1, initializer=_stand_back) as modest:
            self._natives = [
                modest.submit(_native_env, game, group.stop - group.start, threads).result() for group in self.groups
            ]
        self.obs_space: gym.spaces.Box = self._natives[0].single_observation_space
        self.action_space: gym.spaces.Discrete | gym.spaces.Box = self._natives[0].single_action_space
        self._reseed_after = reseed_after
        # Each group's latest frames, as the simulator handed them over: it never writes into them again.
        self._frames: list[Array] = []
        self._lives = np.zeros(num_envs, dtype=np.int32)
        self._course = Course(num_envs, seed, (), np.uint8)

    @property
    def lives(self) -> Array:
        """The lives left in each open game (N,)."""
        return self._lives.copy()

    def reset(self) -> Array:
        """Start all games anew from this batch's seed; returns the first observations (N, 4, 84, 84)."""
        return self._start_from(np.zeros_like(self._course.seedings))

    def step(self, action: Array) -> Step:
        """Take one action (N,) in each game; a finished game starts again within the same step."""
        action = checked_action(action, self.action_space, self.num_envs, clip=False)
        for group, envs in enumerate(self.groups):
            self.begin(group, action[envs])
        steps = [self.finish(group) for group in range(len(self.groups))]
        return steps[0] if len(steps) == 1 else _side_by_side(steps)

    def begin(self, group: int, action: Array) -> None:
        """Start a step of one group of games."""
        if not self._frames:
            raise RuntimeError(f"{self.env_id}: call reset() or restore() before step()")
        envs = self.groups[group]
        # An action out of range would hang the simulator's threads for ever.
        action = checked_action(action, self.action_space, envs.stop - envs.start, clip=False)
        self._natives[group].send(action)
        self._course.log.append(action, envs)

    def finish(self, group: int) -> Step:
        """Wait for the step of one group of games; those that ended have started again."""
        envs = self.groups[group]
        obs, reward, terminated, truncated, info = self._natives[group].recv()
        self._course.tally.add(reward, envs)
        over = terminated | truncated
        # Only a decrease is a death: games grant lives, and DemonAttack may show 1 before its 4 are counted.
        lost_life = ~over & (info["lives"] < self._lives[envs])
        next_obs = obs
        self._frames[group], self._lives[envs] = obs, info["lives"]
        if over.any():
            next_obs = np.where(over[:, None, None, None], info["final_obs"], obs)
            self._reseed(self._among_all(group, over) & (self._course.log.lengths >= self._reseed_after))
            obs = self._frames[group]
        return Step(
            obs=obs,
            next_obs=next_obs,
            reward=reward.astype(np.float32),
            terminated=terminated | lost_life,
            truncated=truncated & ~terminated,
            scores=self._course.tally.finish(self._among_all(group, over)),
        )

    def state(self) -> State:
        """The actions since each copy's last seeding, the sums of the open games, and the frames they have led to."""
        return {"course": self._course.state(), "lives": self._lives.copy(), "obs": self._obs()}

    def restore(self, state: State) -> Array:
        """Replay every copy since its last seeding; where that leads elsewhere, drop the games and start new ones."""
        self._frames = []
        self._course.restore(state["course"])
        try:
            self._replay(np.asarray(state["obs"]), np.asarray(state["lives"]))
        except NotReproducible as reason:
            _logger.warning("%s; open games are dropped, new ones start", reason)
            self.resume_mode = "fresh-episodes"
            return self._start_from(self._course.seedings + 1)
        return self._obs()

    def close(self) -> None:
        """Free the simulators."""
        for native in self._natives:
            native.close()

    def _start_from(self, seedings: Array) -> Array:
        if self._frames and self._course.just_begun(seedings):
            return self._obs()  # the games stand there already, and loading their ROMs anew takes seconds
        self._frames = []  # until they stand there, in case this is interrupted
        self._course.begin(seedings)
        self._seed(np.ones(self.num_envs, dtype=bool))
        return self._obs()

    def _obs(self) -> Array:
        """The latest frames of all games, in an array of their own."""
        return np.concatenate(self._frames)

    def _among_all(self, group: int, envs: Array) -> Array:
        mask = np.zeros(self.num_envs, dtype=bool)
        mask[self.groups[group]] = envs
        return mask

    def _seed(self, envs: Array) -> None:
        """Seed some copies (a mask over all) and start their next game."""
        frames = self._frames or [np.empty(0)] * len(self.groups)
        for group, (native, place) in enumerate(zip(self._natives, self.groups, strict=True)):
            due = envs[place]
            if due.any():
                seeds = [self._course.seed_of(place.start + int(env)) for env in np.flatnonzero(due)]
                options = None if due.all() else {"reset_mask": due}
                frames[group], info = native.reset(seed=np.array(seeds, dtype=np.int64), options=options)
                self._lives[place] = info["lives"]
        self._frames = frames

    def _reseed(self, envs: Array) -> None:
        if envs.any():
            self._course.next_seeding(envs)
            self._seed(envs)

    def _replay(self, saved_obs: Array, saved_lives: Array) -> None:
        """Play all logs so that they end together; each copy is seeded right before its own log begins."""
        table = self._course.log.aligned()
        begins = len(table) - self._course.log.lengths
        self._seed(np.ones(self.num_envs, dtype=bool))
        for time in range(len(table) + 1):
            joining = begins == time
            if time > 0:
                self._seed(joining)
            if time < len(table):
                self._play(checked_action(table[time], self.action_space, self.num_envs, clip=False))
        if not (same_bits(self._obs(), saved_obs) and np.array_equal(self._lives, saved_lives)):
            raise NotReproducible(f"{self.env_id}: replaying the open games led to other frames")

    def _play(self, action: Array) -> None:
        """Step all games without counting anything."""
        for native, place in zip(self._natives, self.groups, strict=True):
            native.send(action[place])
        for group, (native, place) in enumerate(zip(self._natives, self.groups, strict=True)):
            self._frames[group], _, _, _, info = native.recv()
            self._lives[place] = info["lives"]
