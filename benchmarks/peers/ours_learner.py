"""Our GAIL learning from a recording, then judged on whole episodes of the true reward."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from clock import read_settings
from ours_worker import configure

from ilde import Imitator
from ilde.demos import resolve


def main() -> None:
    settings = read_settings()
    demos = resolve(settings.recording)
    config = configure(settings)
    # The peer has no bonus for the entropy of actions.
    config = replace(config, ppo=replace(config.ppo, entropy_weight=0.0))
    imitator = Imitator(settings.env, demos, config=config, seed=settings.seed)
    imitator.learn(settings.steps)
    played = {
        mode: list(imitator.evaluate(settings.episodes, greedy=mode == "greedy").returns)
        for mode in ("greedy", "sampled")
    }
    json.dump(played, sys.stdout)
    print()


if __name__ == "__main__":
    main()
