"""The table of methods: a method is a reward expression optimised by a learner, on some demonstrations."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, TypeAlias

from ilde.data import UserError

LearnerName: TypeAlias = Literal["ppo", "sac", "iq-learn", "bc", "none"]
DemoUse: TypeAlias = Literal["given", "shuffled", "random-policy", "unused"]


SETTINGS: dict[LearnerName, tuple[str, ...]] = {
    "ppo": ("ppo.",), "bc": ("ppo.", "cloning."), "sac": ("sac.",), "iq-learn": ("iq.",), "none": (),
}  # fmt: skip
"""Where the settings of each learner are; a clone's policy is PPO's."""


@dataclass(frozen=True)
class Method:
    """One row."""

    name: str
    reward: str
    """The reward expression; `--reward` replaces it."""
    summary: str
    learner: LearnerName = "ppo"
    demos: DemoUse = "given"
    control: bool = False
    """Controls stand beside every result, so that survival or plain novelty cannot pose as imitation."""

    @property
    def replays(self) -> bool:
        """Whether its learner keeps transitions and learns from them again."""
        return self.learner in ("sac", "iq-learn")

    @property
    def rewarded(self) -> bool:
        """Whether its learner ever asks for a reward."""
        return self.learner in ("ppo", "sac")

    @property
    def foreign_settings(self) -> tuple[str, ...]:
        """How the names of settings begin that other methods read, and this one does not."""
        own = (*SETTINGS[self.learner], *(("rewards.",) if self.rewarded else ()))
        known = {prefix: None for parts in (*SETTINGS.values(), ("rewards.",)) for prefix in parts}
        return tuple(prefix for prefix in known if prefix not in own)


METHODS: tuple[Method, ...] = (
    Method("ilde", "vail + 10*giril + entropy", "imitation, curiosity beyond the demonstrations, state entropy"),
    Method("ilde-no-curiosity", "vail + entropy", "ablation: without the generative model's error"),
    Method("ilde-no-bonus", "vail + 10*giril", "ablation: without the state entropy"),
    Method("ilde-no-imitation", "10*giril + entropy", "ablation: without the discriminator"),
    Method("gail", "gail", "generative adversarial imitation learning"),
    Method("vail", "vail", "adversarial imitation with a variational bottleneck"),
    Method("giril", "giril", "curiosity of a generative model of the demonstrations, alone"),
    Method("cdil", "icm", "curiosity of forward and inverse models of the demonstrations, alone"),
    Method("bc", "constant", "behavioural cloning: the demonstrated actions as labels, no interaction", learner="bc"),
    Method("iq-learn", "constant", "inverse soft-Q learning: no reward model, a value is fitted", learner="iq-learn"),
    Method(
        "hype", "gail", "hybrid inverse RL: a slow discriminator, SAC on a mixture with demonstrations", learner="sac"
    ),
    Method("hype-ilde", "gail + 10*giril + entropy", "HyPE with ILDE's curiosity and state entropy", learner="sac"),
    Method("entropy", "entropy", "state entropy alone: plain novelty", demos="unused", control=True),
    Method("e3b", "e3b", "the elliptical bonus alone: novelty within the episode", demos="unused"),
    Method("expert", "env", "PPO on the true reward: makes demonstrators", demos="unused"),
    Method("sac", "env", "SAC on the true reward: makes demonstrators", learner="sac", demos="unused"),
    Method("random", "constant", "uniformly random actions", learner="none", demos="unused", control=True),
    Method("constant", "constant", "an alive bonus: survival alone", demos="unused", control=True),
    Method("shuffled", "vail + 10*giril + entropy", "ILDE on shuffled demonstrations", demos="shuffled", control=True),
    Method(
        "wrong-demos",
        "vail + 10*giril + entropy",
        "ILDE on a random policy's recording of equal length",
        demos="random-policy",
        control=True,
    ),
)


def find_method(name: str) -> Method:
    """The row of that name."""
    for method in METHODS:
        if method.name == name:
            return method
    close = get_close_matches(name, [method.name for method in METHODS], 1)
    hint = f"did you mean {close[0]}?" if close else "`ilde methods` lists them"
    raise UserError(f"unknown method {name!r}; {hint}")
