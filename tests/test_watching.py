"""Films: what is shown is what happened, and it can be played."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import pytest
import torch
from products import random_demos, saved_run
from toys import Corridor, reward_mix, rollout

from ilde.data import UserError
from ilde.nets.policy import UniformPolicy
from ilde.policies import load_policy
from ilde.video.canvas import WIDTH, Strip, draw_frame
from ilde.video.strips import reward_strips, score_strip
from ilde.video.writer import side_by_side, write_video
from ilde.watching import explain, film, film_demonstration, film_side_by_side, load_to_play, watch


@pytest.fixture(scope="module")
def cheetah(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_run("HalfCheetah-v5", tmp_path_factory.mktemp("runs") / "cheetah")


@pytest.fixture(scope="module")
def qbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_run("ALE/Qbert-v5", tmp_path_factory.mktemp("runs") / "qbert")


def decoded(path: Path, height: int, width: int = WIDTH) -> Any:
    """All frames of a video (T, height, width, 3), by another reader than the one that wrote it."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, height, width, 3)


def test_a_watched_cheetah_gives_one_frame_per_step_and_they_move(cheetah: Path, tmp_path: Path) -> None:
    video = watch(cheetah, tmp_path / "videos" / "cheetah.mp4", max_steps=30)
    frames = decoded(video, 36 + 336 + 5 * 54)
    assert len(frames) == 30
    body, strips = frames[:, 36:372], frames[:, 372:]
    assert (np.abs(np.diff(body.astype(int), axis=0)).max((1, 2, 3)) > 50).all()
    assert (np.abs(np.diff(strips.astype(int), axis=0)).max((1, 2, 3)) > 50).all()


def test_a_watched_game_shows_the_newest_frame_in_whole_pixels(qbert: Path) -> None:
    trainer, _ = load_to_play(qbert)
    shown = film(trainer.learner.policy, "ALE/Qbert-v5", reward=trainer.reward, max_steps=12)
    frames = list(shown)
    assert len(frames) == 12
    newest = shown.scenes[0][1].transitions.obs[5, 0, -1].numpy()
    np.testing.assert_array_equal(frames[5][36 : 36 + 504 : 6, ::6, 0], newest)
    assert shown.fps == 15


def test_a_watched_game_can_be_played_as_a_video(qbert: Path, tmp_path: Path) -> None:
    frames = decoded(watch(qbert, tmp_path / "game.mp4", max_steps=20), 36 + 504 + 5 * 54)
    assert len(frames) == 20
    assert np.abs(frames[0].astype(int) - frames[-1].astype(int)).max() > 50


def test_watching_plays_the_same_episode_for_the_same_seed_only(cheetah: Path) -> None:
    trainer, _ = load_to_play(cheetah)
    policy = trainer.learner.policy
    one, same, other = (film(policy, "HalfCheetah-v5", seed=seed, max_steps=5).returns for seed in (3, 3, 4))
    assert one == same != other


def test_episodes_follow_one_another_with_their_own_seeds() -> None:
    policy = UniformPolicy(gym.spaces.Box(-1, 1, (1,)))
    shown = film(policy, "InvertedPendulum-v5", episodes=2, seed=1, title="random")
    alone = [film(policy, "InvertedPendulum-v5", seed=seed).returns[0] for seed in (1, 2)]
    assert list(shown.returns) == alone
    assert [title for title, _, _ in shown.scenes] == ["random, episode 1 of 2", "random, episode 2 of 2"]


def test_fast_environments_are_filmed_every_few_steps_at_their_true_speed() -> None:
    shown = film(UniformPolicy(gym.spaces.Box(-1, 1, (3,))), "Hopper-v5", max_steps=7)
    assert len(list(shown)) == 3
    assert shown.fps == pytest.approx(125 / 3)


def test_an_environment_without_a_picture_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="Corridor: shows no picture; build it with render_mode='rgb_array'"):
        film(UniformPolicy(gym.spaces.Discrete(3)), Corridor)


def test_explaining_teaches_the_reward_nothing() -> None:
    reward, seen = reward_mix("vail + 10*giril + entropy"), rollout("vector", steps=8, envs=1).transitions
    reward.fit(seen.flatten(), seen)
    before = reward.state_dict()["terms"]["vail"]["net"]
    before = {name: weight.clone() for name, weight in before.items()}
    explain(reward, seen)
    after = reward.state_dict()["terms"]["vail"]["net"]
    assert before
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_shares_add_up_to_the_reward() -> None:
    reward, seen = reward_mix("vail + 10*giril + entropy"), rollout("vector", steps=8, envs=1).transitions
    reward.fit(seen.flatten(), seen)
    shares = explain(reward, seen)
    assert list(shares) == ["vail", "giril", "entropy"]
    assert reward.total_scale is not None
    scaled = sum(shares.values()) / reward.total_scale.divisor
    np.testing.assert_allclose(scaled, reward.reward(seen).flatten().numpy(), rtol=1e-5)


def test_a_demonstration_is_acted_out_again(cheetah: Path) -> None:
    demos = random_demos("HalfCheetah-v5")
    shown = film_demonstration(demos, max_steps=6)
    assert len(list(shown)) == 6
    assert shown.returns[0] == pytest.approx(demos.episodes[0].reward[:6].sum(), rel=1e-5)


def test_a_demonstration_that_leads_elsewhere_is_refused() -> None:
    demos = random_demos("HalfCheetah-v5")
    demos.episodes[0].action[2] = -demos.episodes[0].action[2]
    with pytest.raises(UserError, match="step 3 leads elsewhere here; recorded on gymnasium"):
        film_demonstration(demos, max_steps=6)


def test_two_policies_stand_side_by_side(cheetah: Path, tmp_path: Path) -> None:
    loaded = load_policy(cheetah)
    video = film_side_by_side(loaded, loaded, tmp_path / "both.mp4", max_steps=4)
    frames = decoded(video, 36 + 36 + 336 + 54, 2 * WIDTH + 8)
    assert len(frames) == 4
    left, right = frames[:, 80:400, :WIDTH], frames[:, 80:400, WIDTH + 8 :]
    assert np.abs(left.astype(int) - right.astype(int)).mean() < 3


def test_the_shorter_film_waits_on_its_last_frame(tmp_path: Path) -> None:
    short = [np.full((20, 20, 3), 50, np.uint8), np.full((20, 20, 3), 200, np.uint8)]
    long = [np.full((30, 20, 3), 100, np.uint8)] * 4
    frames = decoded(side_by_side(iter(short), long, ("a", "b"), tmp_path / "x.mp4", 10), 66, 48)
    assert len(frames) == 4
    np.testing.assert_allclose(frames[:, 46, 10, 0], [50, 200, 200, 200], atol=6)
    np.testing.assert_allclose(frames[:, 46, 38, 0], 100, atol=6)


def test_a_film_that_breaks_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> Any:
        yield np.zeros((20, 20, 3), np.uint8)
        raise RuntimeError("the simulator broke")

    with pytest.raises(RuntimeError, match="the simulator broke"):
        write_video(broken(), tmp_path / "film.mp4", 10)
    assert os.listdir(tmp_path) == []


def test_a_video_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"film.gif: videos are written as mp4"):
        write_video([np.zeros((20, 20, 3), np.uint8)], tmp_path / "film.gif", 10)


def test_a_missing_extra_is_named_before_anything_is_played(
    cheetah: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    monkeypatch.setattr("ilde.watching.film", lambda *_, **__: pytest.fail("played for nothing"))
    with pytest.raises(UserError, match=r"pip install ilde\[video\]"):
        watch(cheetah, tmp_path / "film.mp4")


def test_bars_share_one_scale_and_zero_is_always_on_it() -> None:
    shares = {"vail": np.array([1.0, 1.0]), "giril": np.array([-2.0, -2.0])}
    vail, giril, total = reward_strips(shares, {"vail": 1.0, "giril": 10.0})
    assert vail.bar_span == giril.bar_span == total.bar_span == (-2.0, 1.0)
    assert (vail.span, giril.span) == ((0.0, 1.0), (-2.0, pytest.approx(0.0)))
    assert (giril.note, total.note) == ("weight 10", "sum of the terms")
    np.testing.assert_array_equal(total.values, [-1.0, -1.0])


def test_the_score_is_shown_beside_the_demonstrator() -> None:
    strip = score_strip(np.array([100.0, 50.0]), 600.0)
    assert strip.reading == ["100 (17%)", "150 (25%)"]
    assert (strip.goal, strip.bar_span, strip.note) == (600.0, (0.0, 600.0), "demonstrator 600")


def test_a_bar_is_as_long_as_its_value_says() -> None:
    def bar(value: float) -> int:
        strip = Strip("x", "", np.array([value]), (255, 0, 0), ["x"], (0.0, 1.0), (0.0, 4.0))
        frame = draw_frame(np.zeros((100, 504, 3), np.uint8), "", [strip], 0)
        return int((frame[36 + 100 + 37, 388:492] == (255, 0, 0)).all(-1).sum())

    assert bar(1.0) == pytest.approx(26, abs=2)
    assert bar(3.0) == pytest.approx(78, abs=2)


def test_a_run_without_a_checkpoint_is_refused(cheetah: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes((cheetah / "config.json").read_bytes())
    with pytest.raises(UserError, match="no checkpoint yet"):
        watch(tmp_path, tmp_path / "film.mp4")
