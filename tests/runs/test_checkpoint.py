from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ilde.data import UserError
from ilde.runs import CorruptCheckpoint, latest_checkpoint, read_checkpoint, write_checkpoint
from ilde.runs.checkpoint import clear_leftovers


def round_trip(folder: Path, state: dict[str, Any]) -> dict[str, Any]:
    return read_checkpoint(write_checkpoint(folder, 0, state, header={}))[0]


def write_steps(folder: Path, *steps: int) -> None:
    for env_steps in steps:
        write_checkpoint(folder, env_steps, {"weight": torch.full((3,), float(env_steps))}, header={})


def assert_same(back: Any, tree: Any) -> None:
    """Equal in structure, types, dtypes, shapes and bits."""
    if isinstance(tree, torch.Tensor):
        assert isinstance(back, torch.Tensor)
        assert (back.dtype, back.shape) == (tree.dtype, tree.shape)
        assert torch.equal(back, tree.detach())
    elif isinstance(tree, np.ndarray):
        assert isinstance(back, np.ndarray)
        assert (back.dtype, back.shape, back.tobytes()) == (tree.dtype, tree.shape, tree.tobytes())
    elif isinstance(tree, dict):
        assert list(back) == list(tree)
        for key in tree:
            assert_same(back[key], tree[key])
    elif isinstance(tree, list | tuple):
        assert type(back) is type(tree)
        assert len(back) == len(tree)
        for one, other in zip(back, tree, strict=True):
            assert_same(one, other)
    else:
        assert (back, type(back)) == (tree, type(tree))


DTYPES = ("uint8", "bool", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("dtype", [getattr(torch, name) for name in DTYPES])
def test_tensors_keep_their_dtype(tmp_path: Path, dtype: torch.dtype) -> None:
    state = {"x": torch.tensor([[0, 1, 2], [3, 4, 5]]).to(dtype), "scalar": torch.tensor(1).to(dtype)}
    assert_same(round_trip(tmp_path, state), state)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int8", "uint32", "int64", "uint64", "float32", "float64"])
def test_arrays_come_back_as_writable_arrays_of_their_dtype(tmp_path: Path, dtype: str) -> None:
    state = {"x": np.arange(6).reshape(2, 3).astype(dtype), "scalar": np.array(1, dtype=dtype)}
    back = round_trip(tmp_path, state)
    assert_same(back, state)
    back["x"][0, 0] = 1


def test_views_shared_storages_and_empty_tensors_are_held(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    frames = np.arange(12).reshape(3, 4)
    frames.flags.writeable = False
    state = {
        "base": base,
        "transposed": base.T,
        "column": base[:, 1],
        "expanded": base[0].expand(5, 4),
        "again": base,
        "parameter": torch.nn.Parameter(base),
        "empty": torch.zeros(0, 7, dtype=torch.int64),
        "reversed": frames[::-1, ::2],
        "fortran": np.asfortranarray(frames),
        "empty array": np.zeros((2, 0), dtype=np.float64),
    }
    assert_same(round_trip(tmp_path, state), state)


def test_a_state_without_tensors_is_held(tmp_path: Path) -> None:
    assert round_trip(tmp_path, {}) == {}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_tensors_come_back_on_the_cpu(tmp_path: Path) -> None:
    assert_same(round_trip(tmp_path, {"x": torch.arange(3, device="cuda")}), {"x": torch.arange(3)})


def trained(seed: int) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    generator = torch.Generator().manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1e-5)
    net(torch.randn(8, 3, generator=generator)).square().mean().backward()
    optimiser.step()
    return net, optimiser


def test_module_and_optimiser_states_round_trip_exactly(tmp_path: Path) -> None:
    net, optimiser = trained(0)
    state = {"net": dict(net.state_dict()), "optimiser": optimiser.state_dict()}
    back = round_trip(tmp_path, state)
    assert_same(back, state)
    assert set(back["optimiser"]["state"]) == set(range(6))
    other_net, other_optimiser = trained(1)
    other_net.load_state_dict(back["net"])
    other_optimiser.load_state_dict(back["optimiser"])
    assert_same(other_optimiser.state_dict(), optimiser.state_dict())


def test_random_generators_go_on_where_they_were(tmp_path: Path) -> None:
    torch_source, numpy_source = torch.Generator().manual_seed(3), np.random.default_rng(4)
    mersenne = np.random.Generator(np.random.MT19937(5))
    state = {
        "torch": torch_source.get_state(),
        "numpy": dict(numpy_source.bit_generator.state),
        "mersenne": dict(mersenne.bit_generator.state),
    }
    back = round_trip(tmp_path, state)
    expected = torch.rand(4, generator=torch_source), numpy_source.random(4), mersenne.random(4)
    torch_source.set_state(back["torch"])
    numpy_source.bit_generator.state = back["numpy"]
    mersenne.bit_generator.state = back["mersenne"]
    assert torch.equal(torch.rand(4, generator=torch_source), expected[0])
    assert np.array_equal(numpy_source.random(4), expected[1])
    assert np.array_equal(mersenne.random(4), expected[2])


def test_the_header_carries_steps_and_format_and_what_was_given(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, 4096, {}, header={"update": 1, "best": float("-inf"), "mean": torch.ones(2)})
    _, header = read_checkpoint(path)
    assert path == tmp_path / "000000004096"
    assert header.pop("mean").tolist() == [1.0, 1.0]
    assert header == {"update": 1, "best": float("-inf"), "env_steps": 4096, "format": 1}


def test_equal_states_are_written_as_equal_bytes(tmp_path: Path) -> None:
    one, other = (write_checkpoint(tmp_path / name, 1, {"b": torch.ones(2), "a": 1.5}, header={}) for name in "xy")
    for name in ("state.json", "tensors.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_files_have_the_permissions_the_umask_leaves(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    path = write_checkpoint(tmp_path, 1, {"x": torch.ones(1)}, header={})
    assert {file.stat().st_mode for file in path.iterdir()} == {plain.stat().st_mode}


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors"])
def test_every_flipped_byte_is_noticed(tmp_path: Path, name: str) -> None:
    path = write_checkpoint(tmp_path, 7, {"weight": torch.arange(3.0), "note": "text", "rate": 0.1}, header={})
    whole = (path / name).read_bytes()
    for place in range(len(whole)):
        (path / name).write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(CorruptCheckpoint, match=name):
            read_checkpoint(path)
    (path / name).write_bytes(whole)
    read_checkpoint(path)


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors"])
def test_truncated_lengthened_and_missing_files_are_noticed(tmp_path: Path, name: str) -> None:
    path = write_checkpoint(tmp_path, 7, {"weight": torch.arange(3.0)}, header={})
    whole = (path / name).read_bytes()
    for damaged in (b"", whole[:1], whole[: len(whole) // 2], whole[:-1], whole + b"\0", whole + b"\n"):
        (path / name).write_bytes(damaged)
        with pytest.raises(CorruptCheckpoint, match=rf"{name}: {len(damaged)} bytes do not match"):
            read_checkpoint(path)
    (path / name).unlink()
    with pytest.raises(CorruptCheckpoint, match=f"{name}: No such file"):
        read_checkpoint(path)


FOREIGN = {
    "a list": "[]",
    "a number": "3",
    "no format": "{}",
    "no checksum": '{"format": 1}',
    "no header": '{"format": 1, "tensors_sha256": "HASH", "state": {}}',
    "no steps": '{"format": 1, "tensors_sha256": "HASH", "header": {}, "state": {}}',
    "no such tensor": '{"format": 1, "tensors_sha256": "HASH", "header": {"env_steps": 7}, "state": {"$tensor": "x"}}',
    "a list as key": '{"format": 1, "tensors_sha256": "HASH", "header": {"$dict": [[[], 0]]}, "state": {}}',
    "bottomless": "[" * 90_000 + "]" * 90_000,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_sealed_document_of_another_make_is_corrupt_not_a_crash(tmp_path: Path, name: str) -> None:
    path = write_checkpoint(tmp_path, 7, {}, header={})
    body = FOREIGN[name].replace("HASH", sha256((path / "tensors.safetensors").read_bytes()).hexdigest())
    (path / "state.json").write_text(f'{{"sha256": "{sha256(body.encode()).hexdigest()}", "body": {body}}}\n')
    with pytest.raises(CorruptCheckpoint, match="do not match" if name == "bottomless" else "not a checkpoint"):
        read_checkpoint(path)


def test_another_format_is_refused_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ilde.runs.checkpoint.FORMAT", 2)
    path = write_checkpoint(tmp_path, 7, {}, header={})
    monkeypatch.undo()
    with pytest.raises(CorruptCheckpoint, match="format 2; this version of ilde reads format 1"):
        read_checkpoint(path)


def test_a_checkpoint_under_another_steps_name_is_refused(tmp_path: Path) -> None:
    write_steps(tmp_path, 100)
    (tmp_path / "000000000100").rename(tmp_path / "000000000999")
    with pytest.raises(CorruptCheckpoint, match="written at 100 steps"):
        read_checkpoint(tmp_path / "000000000999")
    (tmp_path / "000000000999").rename(tmp_path / "best")
    assert read_checkpoint(tmp_path / "best")[1]["env_steps"] == 100


def test_half_written_folders_are_never_loaded_and_are_cleared(tmp_path: Path) -> None:
    write_steps(tmp_path, 100, 200)
    (tmp_path / "000000000200").rename(tmp_path / ".tmp-000000000200")
    latest = latest_checkpoint(tmp_path)
    assert latest is not None
    assert (latest.header["env_steps"], latest.note) == (100, None)
    clear_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["000000000100"]


def test_the_same_steps_can_be_written_again(tmp_path: Path) -> None:
    for value in (1, 2):
        write_checkpoint(tmp_path, 100, {"value": value}, header={})
    assert [path.name for path in tmp_path.iterdir()] == ["000000000100"]
    assert read_checkpoint(tmp_path / "000000000100")[0] == {"value": 2}


@pytest.mark.parametrize("replaced", [False, True])
def test_a_kill_while_replacing_leaves_one_of_the_two(tmp_path: Path, replaced: bool) -> None:
    former, path = write_checkpoint(tmp_path / "former", 100, {"value": 1}, header={}), tmp_path / "000000000100"
    shutil.copytree(former, tmp_path / "000000000100.replaced")
    if replaced:
        write_checkpoint(tmp_path / "new", 100, {"value": 2}, header={}).rename(path)
    clear_leftovers(tmp_path)
    assert read_checkpoint(path)[0] == {"value": 2 if replaced else 1}
    assert not (tmp_path / "000000000100.replaced").exists()


def test_a_failed_write_leaves_the_former_checkpoint_and_nothing_else(tmp_path: Path) -> None:
    write_steps(tmp_path, 100)
    with pytest.raises(TypeError, match="learner: a checkpoint cannot hold object"):
        write_checkpoint(tmp_path, 100, {"learner": object()}, header={})
    assert [path.name for path in tmp_path.iterdir()] == ["000000000100"]
    assert read_checkpoint(tmp_path / "000000000100")[0]["weight"].tolist() == [100.0] * 3


def test_a_folder_that_cannot_be_written_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file/000000000001: cannot write the checkpoint \(.*`ilde resume`"):
        write_checkpoint(tmp_path / "file", 1, {}, header={})


def test_negative_steps_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="env_steps is -1"):
        write_checkpoint(tmp_path, -1, {}, header={})
