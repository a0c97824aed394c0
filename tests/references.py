"""What the core must compute, written a second time: plain NumPy, float64, one sample after the other.

Each function follows the equation in its docstring, not the code under test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def array(tensor: torch.Tensor) -> Floats:
    """A tensor's numbers in float64."""
    return tensor.detach().double().numpy()


def advantages(
    reward: Any, value: Any, next_value: Any, terminated: Any, ended: Any, discount: float, gae_lambda: float
) -> Floats:
    """A_t = sum_k (discount lambda)^k delta_{t+k} up to the episode's end; delta = r + discount V(s') - V(s)."""
    steps, envs = np.shape(reward)
    result = np.zeros((steps, envs))
    for env in range(envs):
        for start in range(steps):
            weight = 1.0
            for t in range(start, steps):
                future = 0.0 if terminated[t][env] else discount * float(next_value[t][env])
                result[start, env] += weight * (float(reward[t][env]) + future - float(value[t][env]))
                weight *= discount * gae_lambda
                if ended[t][env]:
                    break
    return result


def categorical(logits: Any, action: int) -> tuple[float, float]:
    """log pi(action) and entropy of softmax(logits)."""
    total = math.log(sum(math.exp(x) for x in logits))
    log_probs = [x - total for x in logits]
    return log_probs[action], -sum(math.exp(x) * x for x in log_probs)


def gaussian(mean: Any, log_std: Any, action: Any) -> tuple[float, float]:
    """log density of the action and entropy of independent normals."""
    log_prob = entropy = 0.0
    for m, s, a in zip(mean, log_std, action, strict=True):
        variance = math.exp(2 * s)
        log_prob += -((a - m) ** 2) / (2 * variance) - 0.5 * math.log(2 * math.pi * variance)
        entropy += 0.5 * math.log(2 * math.pi * math.e * variance)
    return log_prob, entropy


def ppo_loss(
    choices: Sequence[tuple[float, float]], value: Any, old_log_prob: Any, old_value: Any, advantage: Any, target: Any,
    *, clip: float, clip_value: bool, value_weight: float, entropy_weight: float,
) -> float:  # fmt: skip
    """-E min(rho A, clip(rho) A) + value_weight E (V - target)^2 / 2 - entropy_weight E H.

    With `clip_value` the larger error of V and of V held within `clip` of the old value counts. `choices` holds the
    new log-probability and the entropy of each sample.
    """
    size = len(choices)
    total = 0.0
    for i in range(size):
        ratio = math.exp(choices[i][0] - old_log_prob[i])
        held = min(max(ratio, 1 - clip), 1 + clip)
        error = (value[i] - target[i]) ** 2
        if clip_value:
            near = old_value[i] + min(max(value[i] - old_value[i], -clip), clip)
            error = max(error, (near - target[i]) ** 2)
        gain = min(ratio * advantage[i], held * advantage[i])
        total += -gain + value_weight * 0.5 * error - entropy_weight * choices[i][1]
    return total / size


def dense(layers: Sequence[torch.nn.Module], x: Floats, activation: Callable[[float], float] = math.tanh) -> Floats:
    """A vector through dense layers, an activation after each."""
    for layer in layers:
        if isinstance(layer, torch.nn.Linear):
            x = np.array([activation(z) for z in linear(layer, x)])
    return x


def linear(layer: torch.nn.Linear, x: Floats) -> Floats:
    """W x + b."""
    weight, bias = array(layer.weight), array(layer.bias)
    return np.array([sum(w * v for w, v in zip(row, x, strict=True)) + b for row, b in zip(weight, bias, strict=True)])


def normal_kl(mean: float, std: float) -> float:
    """KL(N(mean, std^2) || N(0, 1)) = (mean^2 + std^2 - 1) / 2 - log std."""
    return 0.5 * (mean**2 + std**2 - 1) - math.log(std)


def log_sigmoid(x: float) -> float:
    """log of 1 / (1 + exp(-x)), without overflow."""
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def adversarial_loss(
    expert: Sequence[tuple[float, float | None]], policy: Sequence[tuple[float, float | None]],
    noise: tuple[Any, Any], *, weight: float, limit: float,
) -> float:  # fmt: skip
    """E_demo[-log D(z)] + E_policy[-log(1 - D(z))] + weight (KL averaged over both - limit), z = mu + sigma noise.

    Each sample is (mu, log sigma); without sigma z is mu, and there is no KL.
    """
    total = 0.0
    divergence: list[float] = []
    for samples, drawn, sign in ((expert, noise[0], 1.0), (policy, noise[1], -1.0)):
        losses, kls = [], []
        for i, (mu, log_std) in enumerate(samples):
            z = mu if log_std is None else mu + math.exp(log_std) * drawn[i]
            losses.append(-log_sigmoid(sign * z))
            kls.append(0.0 if log_std is None else normal_kl(mu, math.exp(log_std)))
        total += sum(losses) / len(losses)
        divergence.append(sum(kls) / len(kls))
    bottleneck = 0.0 if expert[0][1] is None else weight * (sum(divergence) / 2 - limit)
    return total + bottleneck


def generative_loss(
    net: Any, features: Any, action: Any, next_features: Any, noise: Any, *, discrete: bool, action_weight: float,
    latent_weight: float, share: float,
) -> float:  # fmt: skip
    """E[error + latent_weight KL(q(z | s, s') || N(0, I))] + action_weight (action term).

    The error is |decode(z, s) - s'|^2 / 2, a `share` of it with the action itself in the place of z. The action term is
    the cross-entropy of softmax(z) where actions are discrete, else the squared error of z's mean, averaged over
    dimensions.
    """
    size = len(features)
    total = 0.0
    for i in range(size):
        units = dense(net.encoder, np.concatenate([features[i], next_features[i]]))
        mean, log_var = linear(net.mean_head, units), linear(net.log_var_head, units)
        code = mean + np.exp(0.5 * log_var) * noise[i]
        for weight, cause in ((1.0 - share, code), (share, action[i])):
            predicted = linear(net.next_head, dense(net.decoder, np.concatenate([cause, features[i]])))
            total += weight * 0.5 * float(((predicted - next_features[i]) ** 2).sum())
        total += latent_weight * sum(normal_kl(m, math.exp(0.5 * v)) for m, v in zip(mean, log_var, strict=True))
        if discrete:
            total -= action_weight * categorical(code, int(np.argmax(action[i])))[0]
        else:
            total += action_weight * float(((mean - action[i]) ** 2).mean())
    return total / size


def kth_distance(query: Any, references: Any, k: int) -> Floats:
    """Distance from each query to its k-th nearest reference; one at distance 0 is the query itself."""
    result = []
    for x in np.asarray(query, np.float64):
        distances = sorted(math.dist(x, y) for y in np.asarray(references, np.float64))
        if distances[0] == 0.0 and len(distances) > 1:
            distances = distances[1:]
        result.append(distances[min(k, len(distances)) - 1])
    return np.array(result)


def elliptical(states: Any, ended: Any, ridge: float) -> Floats:
    """b_t = phi_t^T C^-1 phi_t with C = ridge I + the sum of phi phi^T since the last ending; states (T, N, F).

    The first state of an episode has none.
    """
    states = np.asarray(states, np.float64)
    steps, envs, width = states.shape
    result = np.empty((steps, envs))
    for env in range(envs):
        earlier: list[Floats] = []
        for t in range(steps):
            phi = states[t, env]
            covariance = ridge * np.eye(width) + sum(np.outer(past, past) for past in earlier)
            result[t, env] = phi @ np.linalg.inv(covariance) @ phi if earlier else 0.0
            earlier = [] if ended[t][env] else [*earlier, phi]
    return result


def gradient_penalty(net: Any, points: Any) -> float:
    """E (|grad d(x)| - 1)^2 for d(x) = w tanh(W2 tanh(W1 x + b1) + b2) + b, by the chain rule."""
    first, second = (layer for layer in net.trunk if isinstance(layer, torch.nn.Linear))
    head = array(net.mean_head.weight)[0]
    total = 0.0
    for x in points:
        below = dense([first], x)
        above = dense([second], below)
        # With a bottleneck the head sees the first units only.
        slope = np.zeros(len(above))
        slope[: len(head)] = head * (1 - above[: len(head)] ** 2)
        slope = (slope @ array(second.weight)) * (1 - below**2)
        total += (math.sqrt(float(((slope @ array(first.weight)) ** 2).sum())) - 1) ** 2
    return total / len(points)


def squashed(mean: Any, log_std: Any, noise: Any) -> tuple[Floats, float]:
    """a = tanh(u), u = mean + std noise; log density of a = log N(u; mean, std) - sum log(1 - a^2)."""
    action, log_prob = [], 0.0
    for m, s, n in zip(mean, log_std, noise, strict=True):
        raw = m + math.exp(s) * n
        action.append(math.tanh(raw))
        log_prob += gaussian([m], [s], [raw])[0] - math.log(1 - math.tanh(raw) ** 2)
    return np.array(action), log_prob


def soft_target(reward: Any, terminated: Any, q: Any, log_prob: Any, *, temperature: float, discount: float) -> Floats:
    """r + discount (min_i Q_i(s', a') - temperature log pi(a' | s')), without it where an episode terminated."""
    futures = [min(row[i] for row in q) - temperature * log_prob[i] for i in range(len(reward))]
    return np.array([r + (0.0 if end else discount * f) for r, end, f in zip(reward, terminated, futures, strict=True)])


def sac_losses(
    q: Any, target: Any, actor_q: Any, log_prob: Any, *, temperature: float, target_entropy: float
) -> tuple[float, float, float]:
    """Critics: sum_i E (Q_i - y)^2 / 2. Actor: E[temperature log pi - min_i Q_i]. Temperature: -log t E[log pi + H]."""
    size = len(target)
    critics = sum((row[i] - target[i]) ** 2 / 2 for row in q for i in range(size)) / size
    actor = sum(temperature * log_prob[i] - min(row[i] for row in actor_q) for i in range(size)) / size
    balance = -math.log(temperature) * sum(p + target_entropy for p in log_prob) / size
    return critics, actor, balance


def hype_loss(net: Any, expert: Any, policy: Any, mix: Any, *, weight: float, norm: float) -> float:
    """E f(policy) - E f(expert) + weight E (|grad f(x)| - norm)^2 at x = mix expert + (1 - mix) policy.

    f is a network of Tanh layers; its gradient is worked out by hand, layer by layer.
    """
    layers = [layer for layer in net.trunk if isinstance(layer, torch.nn.Linear)]

    def judged(x: Floats) -> float:
        return float(linear(net.mean_head, dense(layers, x))[0])

    def slope(x: Floats) -> Floats:
        back, units = np.eye(len(x)), x
        for layer in layers:
            units = np.tanh(linear(layer, units))
            back = (1 - units**2)[:, None] * (array(layer.weight) @ back)
        return (array(net.mean_head.weight) @ back)[0]

    size = len(expert)
    total = sum(judged(policy[i]) - judged(expert[i]) for i in range(size))
    for i in range(size):
        between = mix[i] * expert[i] + (1 - mix[i]) * policy[i]
        total += weight * (math.sqrt(float((slope(between) ** 2).sum())) - norm) ** 2
    return total / size


def soft_maximum(values: Any, temperature: float) -> float:
    """V = temperature log sum_a exp(Q(a) / temperature)."""
    peak = max(values)
    return peak + temperature * math.log(sum(math.exp((v - peak) / temperature) for v in values))


def iq_loss(
    q: Any, value: Any, next_value: Any, terminated: Any, num_demos: int,
    *, discount: float, value_term: str, chi_weight: float, chi_on: str,
) -> float:  # fmt: skip
    """-E_demo r + (value term) + chi_weight E r^2 with r = Q(s, a) - discount V(s'), averaged over critics."""
    size = len(value)
    future = [0.0 if terminated[i] else discount * next_value[i] for i in range(size)]
    demos, everything = range(num_demos), range(size)

    def mean(numbers: Any) -> float:
        numbers = list(numbers)
        return sum(numbers) / len(numbers)

    terms = {
        "value": mean(value[i] - future[i] for i in everything),
        "value-demos": mean(value[i] - future[i] for i in demos),
        "initial": (1 - discount) * mean(value[i] for i in demos),
    }
    losses = []
    for row in q:
        reward = [row[i] - future[i] for i in everything]
        squares = mean(reward[i] ** 2 for i in (everything if chi_on == "all" else demos))
        losses.append(-mean(reward[i] for i in demos) + terms[value_term] + chi_weight * squares)
    return mean(losses)
