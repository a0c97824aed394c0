"""`tools/model_audit.py`: what an error depends on, worked out by hand, and a run audited."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
import torch
from made_runs import CHEETAH, cheetah_run
from tool_modules import load_tool
from torch import nn
from torch.nn.functional import one_hot
from toys import generator, transitions

from ilde.demos import resolve
from ilde.rewards.base import Encoded, encode
from ilde.rewards.discriminator import AdversarialReward
from ilde.rewards.generative import GenerativeConfig, GenerativeReward, TransitionVAE
from ilde.watching import load_to_play


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    return load_tool("model_audit")


def play(count: int = 12) -> Encoded:
    features, draw = torch.randn(count, 3, generator=generator(1)), torch.randint(2, (count,), generator=generator(2))
    never = torch.zeros(count, dtype=torch.bool)
    successors = features + torch.randn(count, 3, generator=generator(3))
    return Encoded(features, one_hot(draw, 2).float(), successors, never, torch.zeros(count), never)


def curious(*, blind_to_actions: bool) -> GenerativeReward:
    """A model whose decoder repeats the state, and adds 3 to its first feature for the second action if it sees it."""
    net = TransitionVAE(3, 2, 4, nn.Tanh, generator())

    def repeat(action: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        return features if blind_to_actions else features + 3 * action[..., 1:] * torch.tensor([1.0, 0.0, 0.0])

    net.decode_next = repeat  # type: ignore[method-assign]
    return GenerativeReward(net, GenerativeConfig(), generator(), discrete=True)


def test_an_error_that_is_the_change_is_told_and_so_is_one_that_hears_the_action(audit: ModuleType) -> None:
    seen = play()
    change = (seen.next_features - seen.features).square().mean(-1)
    deaf = audit.curiosity(curious(blind_to_actions=True), seen, play(4))
    assert deaf["error"] == pytest.approx(float(change.mean()))
    assert deaf["with_change"] == pytest.approx(1.0)
    assert deaf["spread_over_actions"] == 0.0
    assert deaf["largest_predicted"] == pytest.approx(float(seen.features.abs().max()))
    attentive = audit.curiosity(curious(blind_to_actions=False), seen, play(4))
    # The error of the two actions differs by (d - 3)^2 - d^2 = 9 - 6 d, over three features: that over root two.
    apart = (9 - 6 * (seen.next_features - seen.features)[:, 0]).abs() / 3 / 2**0.5
    assert attentive["spread_over_actions"] == pytest.approx(float(apart.mean()), rel=1e-5)


def test_an_error_that_is_the_distance_to_the_demonstrations_is_told(audit: ModuleType) -> None:
    model, demos = curious(blind_to_actions=True), play(1)
    model.net.decode_next = lambda action, features: demos.features.expand_as(features)  # type: ignore[method-assign]
    seen = play(30)
    still = replace(seen, next_features=seen.features)
    row = audit.curiosity(model, still, demos)
    assert row["with_distance"] == pytest.approx(1.0)
    assert row["with_change"] is None  # nothing changes


def test_play_is_thinned_evenly_from_its_first_to_its_last_step(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST", 3)
    whole = transitions("vector", 5, 2)
    assert torch.equal(audit.thinned(whole).obs, whole.flatten().obs[[0, 4, 9]])
    short = transitions("vector", 2)
    assert torch.equal(audit.thinned(short).obs, short.obs)


def test_a_run_is_asked_about_all_three_kinds_of_play(
    audit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, kept = tmp_path / "run", tmp_path / "audit.json"
    cheetah_run(run)
    game = "halfcheetah-v5/weak-v0"
    monkeypatch.setattr("sys.argv", ["model_audit.py", str(run), "--game", game, "--steps", "4", "--json", str(kept)])
    assert audit.main() == 0
    assert audit.main() == 0  # the same run takes its own place
    (found,) = json.loads(kept.read_text())["runs"]
    assert list(found["rows"]) == ["demonstration", "demonstrator, later", "random"]
    fragment = resolve(CHEETAH).num_transitions
    assert found["rows"]["demonstration"]["steps"] == fragment
    assert found["rows"]["demonstrator, later"]["steps"] == resolve(game).num_transitions - fragment
    assert found["rows"]["random"]["steps"] == 4 * audit.NUM_ENVS
    for row in found["rows"].values():
        assert row["error"] > 0
        assert row["spread_over_actions"] is None  # there is no list of all continuous actions
    trainer, _ = load_to_play(run)
    shown = encode(resolve(CHEETAH).transitions(), trainer.reward.space, trainer.reward.code)
    imitation = trainer.reward.terms["vail"].model
    assert isinstance(imitation, AdversarialReward)
    judged = imitation.judge(shown).logit.detach().mean()
    assert found["rows"]["demonstration"]["logit"] == pytest.approx(float(judged), rel=1e-5)
    assert len({row["logit"] for row in found["rows"].values()}) == 3
    assert "| random |" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["model_audit.py", str(run), "--game", f"{game}:0.05"])
    with pytest.raises(SystemExit, match="no more than the demonstration"):
        audit.main()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a run with --game, or --from FILE"),
        (["run"], "give a run with --game, or --from FILE"),
        (["--from", "nothing.json", "--game", "x"], "give a run with --game, or --from FILE"),
        (["run", "--game", "x", "--steps", "1"], "at least two random steps"),
    ],
)
def test_a_mistake_is_answered_in_one_line(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["model_audit.py", *arguments])
    with pytest.raises(SystemExit):
        audit.main()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", "[]", '{"runs": [{"env": "CartPole-v1", "rows": {"random": {}}}]}'])
def test_a_file_of_another_kind_is_refused(
    audit: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "bad.json").write_text(text)
    monkeypatch.setattr("sys.argv", ["model_audit.py", "--from", str(tmp_path / "bad.json")])
    with pytest.raises(SystemExit, match="not what --json wrote"):
        audit.main()
