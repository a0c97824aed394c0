from __future__ import annotations

import numpy as np

from ilde.theory.curiosity import UNKNOWN, distances, fit_transitions, intrinsic_reward
from ilde.theory.mdp import Mdp, Trajectories, one_hot_features
from ilde.theory.worlds import chain_mdp


def line_mdp(kernel: np.ndarray, horizon: int = 3) -> Mdp:
    states, actions, _ = kernel.shape
    full = np.broadcast_to(kernel, (horizon, *kernel.shape)).copy()
    return Mdp(full, 0, np.arange(states, dtype=float)[:, None], one_hot_features(states, actions))


def test_distances_are_squared_and_capped() -> None:
    mdp = line_mdp(np.full((3, 1, 3), 1 / 3))
    assert distances(mdp).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    near = Mdp(mdp.kernel, 0, mdp.positions / 4, mdp.features)
    assert distances(near)[0].tolist() == [0, 1 / 16, 1 / 4]


def test_the_fitted_successor_is_the_mode_and_its_error_the_rest() -> None:
    # The fit is linear in the model's probabilities, so the best model is a point mass, here on the mode.
    rows = np.zeros((3, 1, 3))
    rows[0, 0], rows[1, 0], rows[2, 0] = (0.0, 0.7, 0.3), (0.5, 0.5, 0.0), (0.0, 0.0, 1.0)
    mdp = line_mdp(rows)
    demos = Trajectories(np.array([[0, 1, 0, 1], [0, 2, 2, 2], [0, 1, 0, 2]]), np.zeros((3, 3), dtype=np.int64))
    predicted = fit_transitions(mdp, demos, "tabular")
    assert predicted.ravel().tolist() == [1, 0, 2]  # from 0: to 1 three times, to 2 twice
    np.testing.assert_allclose(intrinsic_reward(mdp, predicted)[0].ravel(), [0.3, 0.5, 0.0])


def test_what_was_never_demonstrated_is_as_curious_as_can_be() -> None:
    mdp = line_mdp(np.full((3, 2, 3), 1 / 3))
    demos = Trajectories(np.array([[0, 1, 2, 2]]), np.array([[0, 0, 0]]))
    predicted = fit_transitions(mdp, demos, "tabular")
    assert (predicted[:, 1] == UNKNOWN).all()
    reward = intrinsic_reward(mdp, predicted)
    assert (reward[:, :, 1] == 1).all()
    np.testing.assert_allclose(reward[:, :, 0], 2 / 3)


def test_a_model_of_displacements_knows_the_corridor_beyond_the_demonstrations() -> None:
    mdp = chain_mdp(corridor=5, room=2, num_actions=3, horizon=3, slip=0.1)
    # Near the start: forward twice, then two cells back, then one back.
    demos = Trajectories(np.array([[0, 1, 2, 0], [0, 1, 2, 1]]), np.array([[2, 2, 1], [2, 2, 0]]))
    predicted = fit_transitions(mdp, demos, "displacement")
    assert predicted[4].tolist() == [3, 2, 5]
    reward = intrinsic_reward(mdp, predicted)[0]
    np.testing.assert_allclose(reward[2:5], 0.1)  # a slip is all that surprises
    np.testing.assert_allclose(reward[5:, 2], 0.5)  # one of two states of the room, at random
    assert reward[5, 0] == 1.0  # predicted back in the corridor, where no step leads
