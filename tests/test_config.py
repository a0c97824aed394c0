"""Configurations: the JSON round trip, dotted overrides, the paper's numbers, and what is refused in one line."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ilde.config import PRESETS, RunConfig, find_preset, from_dict, override, to_dict, validated
from ilde.data import UserError
from ilde.fields import leaves


def paths(config: Any, prefix: str = "") -> list[str]:
    """The dotted paths of all fields."""
    found: list[str] = []
    for field in fields(config):
        value = getattr(config, field.name)
        inner = f"{prefix}{field.name}"
        found += paths(value, f"{inner}.") if is_dataclass(value) else [inner]
    return found


def get(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = getattr(config, name)
    return config


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_presets_survive_json_and_make_sense(preset: Any) -> None:
    assert from_dict(RunConfig, json.loads(json.dumps(to_dict(preset.config)))) == preset.config
    assert validated(preset.config) is preset.config
    assert preset.config.preset == preset.name
    assert find_preset(preset.name) == preset.config


@pytest.mark.parametrize("path", paths(RunConfig()))
def test_every_field_can_be_overridden_by_its_path_and_no_other_changes(path: str) -> None:
    config = RunConfig()
    old = get(config, path)
    text = {bool: str(not old).lower(), int: "7", float: "0.125", str: None, type(None): "9"}[type(old)]
    if text is None:
        return  # Choices are tested by their own words below.
    changed = override(config, path.replace("_", "-"), text)
    different = [p for p in paths(config) if get(changed, p) != get(config, p)]
    assert different == [path]
    assert from_dict(RunConfig, to_dict(changed)) == changed


@settings(max_examples=50, deadline=None)
@given(steps=st.integers(1, 2**50), rate=st.floats(1e-8, 1.0), anneal=st.booleans(), demos=st.none() | st.text())
def test_any_values_survive_json(steps: int, rate: float, anneal: bool, demos: str | None) -> None:
    base = RunConfig()
    config = replace(base, steps=steps, demos=demos, ppo=replace(base.ppo, learning_rate=rate, anneal=anneal))
    # A demonstration named "none" would be read as no demonstration at all.
    if demos is None or demos.lower() != "none":
        assert from_dict(RunConfig, json.loads(json.dumps(to_dict(config)))) == config


def test_quick_is_the_plain_one_with_a_discriminator_that_must_not_be_steep() -> None:
    quick, plain = (dict(leaves(to_dict(find_preset(name)))) for name in ("quick", "quick-plain"))
    assert {name: (value, plain[name]) for name, value in quick.items() if value != plain[name]} == {
        "preset": ("quick", "quick-plain"),
        "rewards.discriminator.bottleneck_weight": (0.1, 1.0),
        "rewards.discriminator.gradient_penalty": (10.0, 0.0),
    }


def test_the_papers_numbers() -> None:
    atari, mujoco = find_preset("atari"), find_preset("mujoco")
    assert (atari.num_envs, atari.rollout_steps, atari.steps) == (32, 128, 50_000_000)
    assert (mujoco.num_envs, mujoco.rollout_steps, mujoco.steps) == (32, 2048, 10_000_000)
    assert (atari.ppo.learning_rate, mujoco.ppo.learning_rate) == (2.5e-4, 3e-4)
    assert (atari.ppo.num_epochs, mujoco.ppo.num_epochs) == (4, 10)
    assert (atari.ppo.entropy_weight, mujoco.ppo.entropy_weight) == (0.01, 0.0)
    assert (atari.rewards.hidden, mujoco.rewards.hidden) == (1024, 100)
    assert (atari.rewards.generative.epochs, mujoco.rewards.generative.epochs) == (1000, 10_000)
    assert (atari.rewards.generative.subsample, mujoco.rewards.generative.subsample) == (4, 20)
    assert (atari.rewards.generative.action_weight, mujoco.rewards.generative.action_weight) == (100.0, 0.01)
    assert (atari.evaluation.every, mujoco.evaluation.every) == (200, 6)
    for config in (atari, mujoco):
        ppo = config.ppo
        assert (ppo.clip_range, ppo.discount, ppo.gae_lambda, ppo.value_weight) == (0.1, 0.99, 0.95, 0.5)
        assert (ppo.num_minibatches, ppo.max_grad_norm, ppo.anneal, ppo.clip_value) == (32, 0.5, True, True)
        assert (ppo.advantages, ppo.hidden) == ("rollout", 100)
        assert config.rewards.generative.learning_rate == config.rewards.discriminator.learning_rate == 3e-4
        assert config.rewards.generative.batch_size == 32
        assert config.rewards.discriminator.bottleneck_weight == 1.0
        assert config.rewards.curiosity_factor == 1.0
    assert not mujoco.clip_actions


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("stepz", "5", "unknown setting stepz; did you mean steps?"),
        ("ppo.learning-rat", "1", "unknown setting ppo.learning_rat; did you mean learning_rate?"),
        ("ppo", "1", "ppo: name one of its parts: learning_rate"),
        ("steps.more", "1", "unknown setting steps.more; steps has no parts"),
        ("steps", "many", "steps: 'many' is not a whole number"),
        ("steps", "1.5", "steps: '1.5' is not a whole number"),
        ("steps", "inf", "steps: 'inf' is not a whole number"),
        ("ppo.learning_rate", "fast", "learning_rate: 'fast' is not a number"),
        ("ppo.learning_rate", "nan", "learning_rate: 'nan' is not a number"),
        ("ppo.anneal", "maybe", "anneal: 'maybe' is not true or false"),
        ("device", "tpu", "device: 'tpu' is not one of auto, cpu, cuda"),
        ("rewards.scale.terms", "some", "terms: 'some' is not one of all, exploration, novelty, none"),
    ],
)
def test_each_mistake_is_named(path: str, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        override(RunConfig(), path, text)


def test_numbers_may_be_written_as_people_do() -> None:
    assert override(RunConfig(), "steps", "1e6").steps == 1_000_000
    assert override(RunConfig(), "demos", "none").demos is None
    assert override(RunConfig(), "schedule_steps", "none").schedule_steps is None
    assert override(RunConfig(), "rewards.discriminator.input", "state-action").rewards.discriminator.input


def test_a_long_whole_number_keeps_its_digits() -> None:
    assert override(RunConfig(), "seed", "9007199254740993").seed == 9007199254740993


def test_an_unknown_key_of_a_file_is_named_with_its_path() -> None:
    with pytest.raises(UserError, match=r"unknown setting ppo\.learning_rat; did you mean learning_rate\?"):
        from_dict(RunConfig, {"ppo": {"learning_rat": 1}})
    with pytest.raises(UserError, match="ppo: expected settings, received 3"):
        from_dict(RunConfig, {"ppo": 3})
    with pytest.raises(UserError, match=r"unknown preset 'quik'; did you mean quick\?"):
        find_preset("quik")


@pytest.mark.parametrize("values", [{"steps": 1.5}, {"env": 3}, {"seed": None}, {"device": 1}, {"ppo": {"anneal": []}}])
def test_a_wrong_type_in_a_file_is_named(values: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        from_dict(RunConfig, values)


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("steps", "0", "steps: must be at least 1, received 0"),
        ("num_envs", "0", "num_envs: must be at least 1"),
        ("ppo.num_minibatches", "5000", "ppo.num_minibatches: 5000 of a rollout of 4096 steps"),
        ("ppo.learning_rate", "0", "ppo.learning_rate: must be positive"),
        ("ppo.discount", "1.5", r"ppo.discount: must lie in \[0, 1\]"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(path: str, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        validated(override(RunConfig(), path, text))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"steps": "many"}, "steps: 'many' is not a whole number"),
        ({"steps": 1e5}, "steps: 100000.0 is not a whole number"),
        ({"steps": None}, "steps: None is not a whole number"),
        ({"schedule_steps": 0.5}, "schedule_steps: 0.5 is not a whole number or none"),
        ({"clip_actions": "yes"}, "clip_actions: 'yes' is not true or false"),
        ({"device": "gpu"}, "device: 'gpu' is not one of auto, cpu, cuda"),
        ({"env": 3}, "env: 3 is not a text"),
        ({"ppo": {"hidden": 8}}, "ppo: expected a PPOConfig, received {'hidden': 8}"),
        ({"ppo": replace(RunConfig().ppo, discount="most")}, "ppo.discount: 'most' is not a number"),
    ],
)
def test_a_wrong_type_in_python_is_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        validated(replace(RunConfig(), **changes))
    assert str(caught.value) == says


@pytest.mark.parametrize("method", ["bc", "iq-learn", "random"])
def test_a_reward_that_nobody_asks_for_is_refused(method: str) -> None:
    config = validated(RunConfig(method=method))
    with pytest.raises(UserError, match=f"reward: method {method} asks for none"):
        validated(override(config, "reward", "vail + giril"))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("seed", "-1"),
        ("ppo.num_minibatches", "0"),
        ("ppo.num_epochs", "0"),
        ("rewards.generative.batch_size", "0"),
        ("rewards.generative.subsample", "0"),
        ("rewards.generative.dying_steps", "-1"),
        ("rewards.generative.dying_steps", "256"),
        ("rewards.generative.settled_steps", "-1"),
        ("rewards.generative.settled_steps", "129"),
        ("rewards.generative.surprise_limit", "-1"),
        ("rewards.generative.surprise_floor", "-1"),
        ("rewards.discriminator.logit_limit", "-1"),
        ("rewards.discriminator.batch_size", "0"),
        ("rewards.entropy.num_neighbors", "0"),
        ("rewards.scale.discount", "2"),
        ("rewards.discriminator.rollouts", "0"),
        ("sac.batch_size", "0"),
        ("sac.demo_share", "1.5"),
        ("sac.temperature", "0"),
        ("iq.temperature", "0"),
        ("iq.target_rate", "2"),
        ("evaluation.final_episodes", "0"),
    ],
)
def test_numbers_that_would_fail_later_are_refused_at_the_start(path: str, text: str) -> None:
    with pytest.raises(UserError):
        validated(override(RunConfig(), path, text))


def test_a_curiosity_that_could_pay_nothing_is_refused() -> None:
    settled = override(RunConfig(), "rewards.generative.settled_steps", "128")
    validated(settled)
    validated(override(settled, "rewards.generative.surprise_limit", "5"))
    floored = override(RunConfig(), "rewards.generative.surprise_floor", "2")
    validated(override(floored, "rewards.generative.surprise_limit", "3"))
    with pytest.raises(UserError, match="a limit of 2 and a floor of 2 leave nothing to pay"):
        validated(override(floored, "rewards.generative.surprise_limit", "2"))
