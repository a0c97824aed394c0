"""Environments: from an id, a factory or a vector environment to a batch that always shows the true successor."""

from ilde.envs.base import EnvBatch, Score, Step, episode_seed
from ilde.envs.make import EnvLike, make_envs
from ilde.envs.names import canonical_env_id, list_envs, simulator_versions
from ilde.envs.rendering import single_env

__all__ = [
    "EnvBatch",
    "EnvLike",
    "Score",
    "Step",
    "canonical_env_id",
    "episode_seed",
    "list_envs",
    "make_envs",
    "simulator_versions",
    "single_env",
]
