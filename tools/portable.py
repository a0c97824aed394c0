"""Carry an unfinished run through a narrow door: without the models that can be fitted again, in parts of some size.

    python tools/portable.py pack runs/a/seed-0 parts/ --part-mib 15
    python tools/portable.py unpack parts/ runs/a/seed-0       # on the other machine
    ilde resume runs/a/seed-0

Half of an Atari checkpoint is the generative model, which is frozen and a function of the seed and the demonstrations.
`unpack` fits it again and asks the checkpoint's own checksum whether every bit is as it was. On another kind of
machine it will not be; `--accept-other-bits` goes on all the same and says so in the run's provenance.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import sys
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from ilde.config import RunConfig, from_dict
from ilde.data import UserError
from ilde.launch import check_demos_unchanged, with_its_threads
from ilde.prepare import build, fit
from ilde.runs.checkpoint import TENSORS, TREE, CorruptCheckpoint, checkpoint_steps, read_checkpoint, write_checkpoint
from ilde.runs.directory import CONFIG, PROVENANCE
from ilde.runs.durable import FolderLock, write_atomically
from ilde.runs.tree import decode, encode

REFITTED = ("reward.terms.giril.net.", "reward.terms.icm.net.")
"""Beginnings of the names of what is fitted before interaction and never moves again."""
INDEX = "parts.json"
LEFT_BEHIND = ("lock", "checkpoints", "tensorboard", "videos")


def pack(run: Path, out: Path, part_bytes: int) -> list[Path]:
    """Write the run with its newest whole checkpoint as numbered parts and their index; returns the parts."""
    if not (run / CONFIG).is_file():
        raise UserError(f"{run}: not a run (no {CONFIG})")
    if part_bytes < 1:
        raise UserError(f"parts of {part_bytes} bytes: name a size above 0")
    lock = FolderLock(run)  # a run at work would prune what is being read
    try:
        content = _archive(run)
    finally:
        lock.release()
    out.mkdir(parents=True, exist_ok=True)
    parts = [content[first : first + part_bytes] for first in range(0, len(content), part_bytes)]
    paths = [out / f"part-{number:03d}" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        path.write_bytes(part)
    index = {"parts": [path.name for path in paths], "sha256": hashlib.sha256(content).hexdigest()}
    (out / INDEX).write_text(json.dumps(index, indent=1) + "\n")
    return paths


def _archive(run: Path) -> bytes:
    steps, tensors = _newest(run / "checkpoints")
    moved = {name: value for name, value in tensors.items() if not name.startswith(REFITTED)}
    folder, archive = f"checkpoints/{steps:012d}", io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in sorted(run.iterdir()):
            if path.name not in LEFT_BEHIND:
                tar.add(path, path.name)
        tar.add(run / folder / TREE, f"{folder}/{TREE}")
        _add(tar, f"{folder}/{TENSORS}", safetensors.torch.save(moved))
    return archive.getvalue()


def _newest(folder: Path) -> tuple[int, dict[str, Tensor]]:
    for steps in reversed(checkpoint_steps(folder)):
        with suppress(CorruptCheckpoint):
            read_checkpoint(folder / f"{steps:012d}")
            return steps, safetensors.torch.load((folder / f"{steps:012d}" / TENSORS).read_bytes())
    raise UserError(f"{folder}: no readable checkpoint")


def unpack(parts: Path, run: Path, *, accept_other_bits: bool = False) -> bool:
    """Make the run again from its parts; returns whether every bit of its checkpoint is as it was."""
    if run.exists():
        raise UserError(f"{run} exists; name a folder that does not")
    unfinished = run.with_name(f".tmp-{run.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(_joined(parts))) as tar:
            tar.extractall(unfinished, filter="data")
        same = _completed(unfinished, run, accept_other_bits=accept_other_bits)
        unfinished.rename(run)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return same


def _joined(parts: Path) -> bytes:
    try:
        index = json.loads((parts / INDEX).read_bytes())
        content = b"".join((parts / name).read_bytes() for name in index["parts"])
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}; carry all parts and {INDEX}") from error
    if hashlib.sha256(content).hexdigest() != index["sha256"]:
        raise UserError(f"{parts}: the parts do not match their checksum; carry them again")
    return content


def _completed(folder: Path, run: Path, *, accept_other_bits: bool) -> bool:
    """Put the refitted models into the checkpoint that lacks them."""
    (newest,) = (folder / "checkpoints").iterdir()
    tensors = safetensors.torch.load((newest / TENSORS).read_bytes()) | _fitted_again(folder)
    whole = safetensors.torch.save(tensors)
    body = json.loads((newest / TREE).read_bytes())["body"]
    same = bool(body["tensors_sha256"] == hashlib.sha256(whole).hexdigest())
    if same:
        (newest / TENSORS).write_bytes(whole)
    elif accept_other_bits:
        state, header = decode(body["state"], tensors), decode(body["header"], tensors)
        write_checkpoint(newest.parent, int(newest.name), state, header=header)
        provenance = json.loads((folder / PROVENANCE).read_bytes())
        provenance["portable_resume"] = f"at {int(newest.name):,} steps the frozen models were fitted again: other bits"
        write_atomically(folder / PROVENANCE, (json.dumps(provenance, indent=1) + "\n").encode())
    else:
        raise UserError(f"{run}: the model fitted again has other bits; --accept-other-bits goes on with it")
    read_checkpoint(newest)
    return same


def _fitted_again(folder: Path) -> dict[str, Tensor]:
    provenance = json.loads((folder / PROVENANCE).read_bytes())
    config = with_its_threads(from_dict(RunConfig, json.loads((folder / CONFIG).read_bytes())), provenance)
    trainer, demos = build(config)
    try:
        check_demos_unchanged(provenance, demos, config)
        fit(trainer, demos)
        tensors: dict[str, Tensor] = {}
        encode({"reward": trainer.reward.state_dict()}, tensors)
    finally:
        trainer.envs.close()
    return {name: value for name, value in tensors.items() if name.startswith(REFITTED)}


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing, unpacking = verbs.add_parser("pack"), verbs.add_parser("unpack")
    packing.add_argument("run", type=Path)
    packing.add_argument("out", type=Path, help="a folder for the parts")
    packing.add_argument("--part-mib", type=float, default=15.0, help="largest part")
    unpacking.add_argument("parts", type=Path, help="the folder of the parts")
    unpacking.add_argument("run", type=Path, help="a folder that does not exist yet")
    unpacking.add_argument("--accept-other-bits", action="store_true")
    options = parser.parse_args()
    try:
        _work(options)
    except UserError as error:
        sys.exit(str(error))


def _work(options: Any) -> None:
    if options.verb == "pack":
        paths = pack(options.run, options.out, int(options.part_mib * 2**20))
        print(f"{len(paths)} parts, {sum(path.stat().st_size for path in paths):,} bytes, in {options.out}")
        return
    same = unpack(options.parts, options.run, accept_other_bits=options.accept_other_bits)
    print("every bit of the checkpoint is as it was" if same else "the frozen models have other bits than before")


if __name__ == "__main__":
    main()
