"""A state tree as JSON plus a flat table of tensors, and back without loss.

JSON has no tensors, tuples, integer keys or non-finite numbers; these become objects with a single key that starts
with `$`. `Module.state_dict()`, `Optimizer.state_dict()` and the states of random generators are such trees.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

RESERVED_BY_SAFETENSORS = "__metadata__"


def encode(node: Any, tensors: dict[str, Tensor], path: tuple[str, ...] = ()) -> Any:
    """The tree as JSON values; its tensors and arrays are copied into `tensors` under their dotted paths."""
    match node:
        case Tensor():
            # A copy in any case: safetensors refuses views, and two leaves may share one storage.
            copied = node.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
            return {"$tensor": _store(copied, tensors, path)}
        case np.ndarray():
            return {"$array": _store(_tensor_of(node, path), tensors, path)}
        case dict():
            return _encode_dict(node, tensors, path)
        case list():
            return _encode_items(node, tensors, path)
        case tuple():
            return {"$tuple": _encode_items(node, tensors, path)}
        case float() if not math.isfinite(node):
            return {"$float": str(float(node))}
        case None | bool() | int() | float() | str():
            return node
    raise TypeError(f"{_dotted(path)}: a checkpoint cannot hold {type(node).__name__}")


def decode(node: Any, tensors: dict[str, Tensor]) -> Any:
    """The tree that `encode` was given; arrays come back as arrays and tensors as tensors."""
    match node:
        case {"$tensor": name}:
            return tensors[name]
        case {"$array": name}:
            return tensors[name].numpy()
        case {"$tuple": items}:
            return tuple(decode(item, tensors) for item in items)
        case {"$float": text}:
            return float(text)
        case {"$dict": pairs}:
            return {key: decode(value, tensors) for key, value in pairs}
        case dict():
            return {key: decode(value, tensors) for key, value in node.items()}
        case list():
            return [decode(item, tensors) for item in node]
    return node


def _encode_dict(node: dict[Any, Any], tensors: dict[str, Tensor], path: tuple[str, ...]) -> Any:
    for key in node:
        if not isinstance(key, str | int):
            raise TypeError(f"{_dotted(path)}: a checkpoint cannot hold the key {key!r}; keys are strings or integers")
    pairs = [(key, encode(value, tensors, (*path, str(key)))) for key, value in node.items()]
    if all(isinstance(key, str) and not key.startswith("$") for key in node):
        return dict(pairs)
    return {"$dict": [list(pair) for pair in pairs]}


def _encode_items(node: list[Any] | tuple[Any, ...], tensors: dict[str, Tensor], path: tuple[str, ...]) -> list[Any]:
    return [encode(item, tensors, (*path, str(index))) for index, item in enumerate(node)]


def _tensor_of(array: np.ndarray[Any, Any], path: tuple[str, ...]) -> Tensor:
    try:
        return torch.from_numpy(array.copy(order="C"))
    except (TypeError, ValueError):
        raise TypeError(f"{_dotted(path)}: a checkpoint cannot hold an array of {array.dtype.str}") from None


def _store(tensor: Tensor, tensors: dict[str, Tensor], path: tuple[str, ...]) -> str:
    name = _dotted(path)
    # Keys may hold dots, so two paths can read alike.
    while name in tensors or name == RESERVED_BY_SAFETENSORS:
        name += "'"
    tensors[name] = tensor
    return name


def _dotted(path: tuple[str, ...]) -> str:
    return ".".join(path)
