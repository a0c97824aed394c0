from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

KILLS = 15

# One process forks the writers, so that only it pays for importing torch.
KILLING = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from ilde.runs.checkpoint import checkpoint_steps, clear_leftovers, latest_checkpoint, prune, write_checkpoint

torch.set_num_threads(1)
folder, kills, delays = Path(sys.argv[1]), int(sys.argv[2]), random.Random(0)


def save_for_ever(first):
    for steps in range(first, first + 1000):
        state = {"steps": steps, "weight": torch.full((64,), steps), "moments": {0: torch.full((2, 8), steps)}}
        # Now and then the same steps again: replacing must be as safe as adding.
        for _ in range(1 + steps % 2):
            write_checkpoint(folder, steps, state, header={})
        prune(folder, 2)
    os._exit(0)


reached = interrupted = 0
for _ in range(kills):
    writer = os.fork()
    if writer == 0:
        save_for_ever(reached + 1)
    while not checkpoint_steps(folder) or checkpoint_steps(folder)[-1] <= reached:
        time.sleep(0.001)
    time.sleep(delays.uniform(0, 0.03))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    interrupted += any(path.name.startswith(".") for path in folder.iterdir())
    clear_leftovers(folder)
    state, header, note = latest_checkpoint(folder)
    assert note is None, note
    assert header["env_steps"] == state["steps"] > reached, (header, state["steps"], reached)
    assert (state["weight"] == state["steps"]).all() and (state["moments"][0] == state["steps"]).all()
    reached = state["steps"]
print(interrupted)
"""


def test_no_kill_leaves_an_unloadable_checkpoint(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", KILLING, str(tmp_path), str(KILLS)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr
    # Kills that hit no write would prove nothing.
    assert json.loads(result.stdout) >= KILLS // 3
