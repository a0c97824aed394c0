"""Films of a policy at work, with each reward term under the picture: one sees why it acts as it does.

An episode is played to its end first; the terms are computed afterwards, because the entropy bonus compares a state
with all others of its rollout, and here the episode is the rollout. Nothing learns while it is watched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ilde.config import RunConfig, from_dict
from ilde.data import Transitions, UserError
from ilde.demos import Demonstrations
from ilde.envs import make_envs
from ilde.envs.base import Array
from ilde.nets.policy import Policy
from ilde.policies import LoadedPolicy, load_policy
from ilde.prepare import choose_device
from ilde.randomness import torch_generator
from ilde.rewards.base import encode
from ilde.rewards.compose import RewardMix
from ilde.rewards.entropy import StateEntropy
from ilde.runs import RunDirectory
from ilde.trainer import Trainer
from ilde.video.camera import Filmable, open_stage
from ilde.video.canvas import Picture, Strip, draw_frame
from ilde.video.scenes import MAX_FPS, Scene, perform, reenact
from ilde.video.stills import evenly
from ilde.video.strips import reward_strips, score_strip
from ilde.video.writer import check_video, side_by_side, write_video

STILL_STEPS, STILL_FPS = 300, 4
"""Agent steps from which stills are taken, and how many pictures of a second they are chosen from."""


@dataclass(frozen=True)
class Film:
    """Episodes with the strips under them; iterating draws the frames one by one."""

    scenes: tuple[tuple[str, Scene, tuple[Strip, ...]], ...]
    """Of each episode: its title, what happened, and what is shown of it."""
    fps: float

    def __iter__(self) -> Iterator[Picture]:
        for title, scene, strips in self.scenes:
            for number, picture in enumerate(scene.reel):
                yield draw_frame(picture, title, strips, number * scene.stride)

    @property
    def returns(self) -> tuple[float, ...]:
        """The true return of each episode as far as it is shown."""
        return tuple(float(scene.transitions.env_reward.sum()) for _, scene, _ in self.scenes)


def film(
    policy: Policy,
    env: Filmable,
    *,
    reward: RewardMix | None = None,
    demonstrator: float | None = None,
    title: str = "",
    episodes: int = 1,
    seed: int = 0,
    max_steps: int | None = None,
    greedy: bool = True,
    clip_actions: bool = True,
    device: torch.device | str = "cpu",
    rendered: bool = False,
    max_fps: int = MAX_FPS,
) -> Film:
    """Film whole episodes of a policy, or their first `max_steps`; with a reward, its terms are shown as well.

    Args:
        policy: who acts; it lives on `device`, as does the reward.
        env: an id, or a function that builds one environment.
        reward: as trained; None shows the score alone.
        demonstrator: the return to compare the score with.
        title: stands above the picture.
        episodes: how many.
        seed: of the first episode; the others follow it.
        max_steps: agent steps after which an episode is cut.
        greedy: take the most likely actions.
        clip_actions: move continuous actions into their bounds.
        device: where policy and reward live.
        rendered: film MuJoCo through OpenGL rather than draw it; slow without a graphics card.
        max_fps: pictures of a second at most.
    """
    shots, fps = [], 0.0
    for number in range(episodes):
        stage = open_stage(env, seed + number, clip_actions=clip_actions, rendered=rendered)
        generator = torch_generator(seed + number, "filming", device)
        try:
            scene = perform(stage, policy, generator, greedy, max_steps, max_fps)
        finally:
            stage.envs.close()
        fps = stage.fps / scene.stride
        name = title if episodes == 1 else f"{title}, episode {number + 1} of {episodes}"
        shots.append((name, scene, _strips(scene, reward, demonstrator)))
    return Film(tuple(shots), fps)


def film_demonstration(
    demos: Demonstrations,
    *,
    episode: int = 0,
    reward: RewardMix | None = None,
    demonstrator: float | None = None,
    title: str = "",
    max_steps: int | None = None,
    device: torch.device | str = "cpu",
    max_fps: int = MAX_FPS,
) -> Film:
    """Film what the demonstrator did: image observations as recorded, everything else acted out again."""
    stage = open_stage(demos.env_id, 0, clip_actions=False)
    try:
        scene = reenact(stage, demos, episode, max_steps, torch.device(device), max_fps)
    finally:
        stage.envs.close()
    return Film(((title, scene, _strips(scene, reward, demonstrator)),), stage.fps / scene.stride)


def watch(
    run: Path,
    video: Path,
    *,
    episodes: int = 1,
    seed: int = 0,
    max_steps: int | None = None,
    greedy: bool = True,
    rendered: bool = False,
) -> Path:
    """Film the newest policy of a run, with each reward term drawn under the picture."""
    if episodes < 1 or (max_steps is not None and max_steps < 1):
        raise UserError(f"{video}: {episodes} episodes of {max_steps} steps; film at least 1 of each")
    check_video(video)
    trainer, demonstrator = load_to_play(run)
    config = trainer.config
    shot = film(
        trainer.learner.policy,
        config.env,
        reward=trainer.reward,
        demonstrator=demonstrator,
        title=f"{config.method} on {config.env}, {trainer.env_steps:,} steps",
        episodes=episodes,
        seed=seed,
        max_steps=max_steps,
        greedy=greedy,
        clip_actions=config.clip_actions,
        device=trainer.device,
        rendered=rendered,
    )
    return write_video(shot, video, shot.fps)


def run_stills(run: Path, *, seed: int = 0, max_steps: int = STILL_STEPS) -> list[Picture]:
    """A few pictures of an episode of a run's newest policy, or of its first steps."""
    loaded = load_policy(run)
    config = loaded.config
    clips = config.clip_actions
    shot = film(loaded.policy, config.env, seed=seed, max_steps=max_steps, clip_actions=clips, max_fps=STILL_FPS)
    return evenly(shot.scenes[0][1].reel)


def demonstration_stills(demos: Demonstrations, *, max_steps: int = STILL_STEPS) -> list[Picture]:
    """A few pictures of what was demonstrated first."""
    return evenly(film_demonstration(demos, max_steps=max_steps, max_fps=STILL_FPS).scenes[0][1].reel)


def film_side_by_side(
    left: LoadedPolicy,
    right: LoadedPolicy,
    video: Path,
    *,
    labels: tuple[str, str] = ("demonstrator", "imitator"),
    seed: int = 0,
    max_steps: int | None = 300,
) -> Path:
    """One video of two policies next to each other; the right one is measured against the left one's score."""

    def shoot(loaded: LoadedPolicy, reference: float | None) -> Film:
        config = loaded.config
        return film(
            loaded.policy,
            config.env,
            demonstrator=reference,
            title=f"{config.method} on {config.env}",
            seed=seed,
            max_steps=max_steps,
            clip_actions=config.clip_actions,
        )

    check_video(video)
    first = shoot(left, None)
    # Not the demonstrator's mean over whole episodes: this film may be cut, and then so is the left one.
    second = shoot(right, first.returns[0])
    return side_by_side(first, second, labels, video, first.fps)


def load_to_play(run: Path) -> tuple[Trainer, float | None]:
    """The newest policy and reward of a run, and the demonstrator's return; its environments are closed."""
    folder = RunDirectory.read(run)
    folder.require_checkpoints()
    checkpoint = folder.load_latest()
    if checkpoint is None:
        raise UserError(f"{run}: no checkpoint yet; `ilde resume {run}` goes on with it")
    folder.require_named_env()
    config = replace(from_dict(RunConfig, folder.config), num_envs=1, rollout_steps=1)
    envs = make_envs(config.env, 1, config.seed, clip_actions=config.clip_actions)
    try:
        trainer = Trainer(config, envs, choose_device("auto"))
    finally:
        envs.close()
    trainer.reward.load_state_dict(checkpoint.state["reward"])
    trainer.learner.load_state_dict(checkpoint.state["learner"])
    trainer.env_steps = checkpoint.state["env_steps"]
    return trainer, folder.provenance.get("demonstrator")


def refer_to(reward: RewardMix, transitions: Transitions) -> None:
    """Let the state entropy compare with these states."""
    encoded = encode(transitions, reward.space, reward.code)
    for term in reward.terms.values():
        # For this term an update is nothing but taking references; all others would learn from theirs.
        if isinstance(term.model, StateEntropy):
            term.model.update(encoded)


def explain(reward: RewardMix, transitions: Transitions) -> dict[str, Array]:
    """Each term's weighted share (T,) of an episode's rewards; the entropy bonus refers to the episode's own states."""
    refer_to(reward, transitions)
    return {name: share.flatten().double().cpu().numpy() for name, share in reward.breakdown(transitions).items()}


def _strips(scene: Scene, reward: RewardMix | None, demonstrator: float | None) -> tuple[Strip, ...]:
    score = score_strip(scene.transitions.env_reward.flatten().double().cpu().numpy(), demonstrator)
    if reward is None:
        return (score,)
    weights: dict[str, float] = {name: term.weight for name, term in reward.terms.items()}
    return (*reward_strips(explain(reward, scene.transitions), weights), score)
