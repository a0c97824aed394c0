from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from ilde.runs.tree import decode, encode


def through_json(tree: Any) -> Any:
    tensors: dict[str, torch.Tensor] = {}
    return decode(json.loads(json.dumps(encode(tree, tensors), allow_nan=False)), tensors)


@pytest.mark.parametrize(
    "leaf",
    [
        None,
        True,
        False,
        0,
        -7,
        2**127 + 1,
        "",
        "naïve 🙂",
        0.1 + 0.2,
        5e-324,
        1.7976931348623157e308,
        [],
        {},
        (),
        [[1]],
    ],
)
def test_json_values_come_back_as_they_were(leaf: Any) -> None:
    back = through_json({"leaf": leaf})["leaf"]
    assert back == leaf
    assert type(back) is type(leaf)


def test_the_sign_of_zero_and_numbers_that_are_not_finite_survive() -> None:
    back = through_json({"numbers": [-0.0, math.inf, -math.inf, math.nan]})["numbers"]
    assert math.copysign(1.0, back[0]) == -1.0
    assert back[1:3] == [math.inf, -math.inf]
    assert math.isnan(back[3])


def test_tuples_and_lists_stay_apart() -> None:
    assert through_json({"betas": (0.9, 0.999), "params": [0, 1]}) == {"betas": (0.9, 0.999), "params": [0, 1]}


def test_keys_keep_their_type_order_and_signs() -> None:
    tree = {1: "integer", "1": "string", "$tensor": "not a tensor", "a.b": {"$dict": 3}, -2: {0: None}}
    back = through_json(tree)
    assert back == tree
    assert list(back) == list(tree)


def test_paths_that_read_alike_hold_different_tensors() -> None:
    tree = {"a.b": torch.tensor(1), "a": {"b": torch.tensor(2), "b'": torch.tensor(3)}, "__metadata__": torch.tensor(4)}
    tensors: dict[str, torch.Tensor] = {}
    back = decode(encode(tree, tensors), tensors)
    assert "__metadata__" not in tensors
    assert [back["a.b"], back["a"]["b"], back["a"]["b'"], back["__metadata__"]] == [1, 2, 3, 4]


def test_encoding_copies_so_later_updates_leave_the_checkpoint_alone() -> None:
    weight, counts = torch.zeros(2), np.zeros(2)
    tensors: dict[str, torch.Tensor] = {}
    encode({"weight": weight, "counts": counts}, tensors)
    weight += 1
    counts += 1
    assert tensors["weight"].tolist() == tensors["counts"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("leaf", [object(), b"bytes", {1, 2}, np.int64(3), np.array(["text"]), np.array([None])])
def test_what_a_checkpoint_cannot_hold_is_named_by_its_path(leaf: Any) -> None:
    with pytest.raises(TypeError, match=r"^learner\.2\.odd: a checkpoint cannot hold"):
        encode({"learner": [0, 1, {"odd": leaf}]}, {})


def test_keys_other_than_strings_and_integers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^learner: a checkpoint cannot hold the key \(1, 2\)"):
        encode({"learner": {(1, 2): 0}}, {})
