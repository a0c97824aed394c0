"""PPO as one plain loop in the manner of CleanRL, on EnvPool's Atari: no classes around it, everything on CPU."""

from __future__ import annotations

from typing import Any

import envpool
import torch
from clock import read_settings, report
from torch import Tensor, nn
from torch.distributions import Categorical

DISCOUNT, GAE_LAMBDA, ENTROPY_WEIGHT, VALUE_WEIGHT, MAX_NORM = 0.99, 0.95, 0.01, 0.5, 0.5


class Agent(nn.Module):
    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 32, 3, 1), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 7 * 7, 512), nn.ReLU(),
        )  # fmt: skip
        self.actor, self.critic = nn.Linear(512, num_actions), nn.Linear(512, 1)

    def forward(self, obs: Tensor) -> tuple[Categorical, Tensor]:
        units = self.trunk(obs / 255.0)
        return Categorical(logits=self.actor(units)), self.critic(units).squeeze(-1)


class Buffers:
    """Tensors (steps, envs) of one rollout."""

    def __init__(self, steps: int, num_envs: int) -> None:
        self.obs = torch.zeros((steps, num_envs, 4, 84, 84))
        self.action, self.log_prob, self.reward, self.done, self.value = (torch.zeros(steps, num_envs) for _ in "alrdv")


def make_envs(settings: Any) -> Any:
    """The preprocessing of the other sides; a lost life ends an episode."""
    return envpool.make(
        settings.env.removeprefix("ALE/"),
        env_type="gymnasium",
        num_envs=settings.num_envs,
        seed=0,
        episodic_life=True,
        reward_clip=True,
        noop_max=30,
        use_fire_reset=True,
        frame_skip=4,
        stack_num=4,
        repeat_action_probability=0.0,
    )


@torch.no_grad()
def collect(envs: Any, agent: Agent, buffers: Buffers, obs: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
    for t in range(len(buffers.reward)):
        buffers.obs[t], buffers.done[t] = obs, done
        policy, buffers.value[t] = agent(obs)
        action = policy.sample()
        buffers.action[t], buffers.log_prob[t] = action, policy.log_prob(action)
        frames, reward, terminated, truncated, _ = envs.step(action.numpy())
        obs, done = torch.from_numpy(frames).float(), torch.from_numpy(terminated | truncated).float()
        buffers.reward[t] = torch.from_numpy(reward)
    return obs, done


@torch.no_grad()
def advantages(agent: Agent, buffers: Buffers, obs: Tensor, done: Tensor) -> Tensor:
    advantage, following = torch.zeros_like(buffers.reward), torch.zeros_like(done)
    next_value, goes_on = agent(obs)[1], 1.0 - done
    for t in reversed(range(len(buffers.reward))):
        surprise = buffers.reward[t] + DISCOUNT * next_value * goes_on - buffers.value[t]
        advantage[t] = following = surprise + DISCOUNT * GAE_LAMBDA * goes_on * following
        next_value, goes_on = buffers.value[t], 1.0 - buffers.done[t]
    return advantage


def loss_of(agent: Agent, data: list[Tensor], clip: float) -> Tensor:
    obs, action, old_log_prob, old_value, advantage, target = data
    policy, value = agent(obs)
    ratio = (policy.log_prob(action) - old_log_prob).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    policy_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(1 - clip, 1 + clip)).mean()
    near = old_value + (value - old_value).clamp(-clip, clip)
    value_loss = 0.5 * torch.max((value - target).square(), (near - target).square()).mean()
    loss: Tensor = policy_loss + VALUE_WEIGHT * value_loss - ENTROPY_WEIGHT * policy.entropy().mean()
    return loss


def learn(agent: Agent, optimiser: torch.optim.Adam, data: list[Tensor], settings: Any) -> None:
    size = len(data[-1])
    for _ in range(settings.num_epochs):
        for index in torch.randperm(size).split(size // settings.num_minibatches):
            optimiser.zero_grad()
            loss_of(agent, [x[index] for x in data], settings.clip_range).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), MAX_NORM)
            optimiser.step()


def main() -> None:
    settings = read_settings()
    torch.manual_seed(0)
    envs = make_envs(settings)
    agent = Agent(int(envs.action_space.n))
    optimiser = torch.optim.Adam(agent.parameters(), lr=settings.learning_rate, eps=1e-5)
    buffers = Buffers(settings.rollout_steps, settings.num_envs)
    now = torch.from_numpy(envs.reset()[0]).float(), torch.zeros(settings.num_envs)

    def iterate(iterations: int) -> None:
        nonlocal now
        for _ in range(iterations):
            now = collect(envs, agent, buffers, *now)
            advantage = advantages(agent, buffers, *now)
            rest = (buffers.action, buffers.log_prob, buffers.value, advantage, advantage + buffers.value)
            learn(agent, optimiser, [x.flatten(0, 1) for x in (buffers.obs, *rest)], settings)

    report(settings, iterate, "envpool")
    envs.close()


if __name__ == "__main__":
    main()
