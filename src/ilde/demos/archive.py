"""One zip of NumPy arrays (`.npz`), read as if a stranger had written it.

Sizes are checked before anything is allocated, array headers go through NumPy's literal reader, payloads are
decompressed in small pieces up to what was declared, and nothing here can run code from a file. What the arrays mean is
the business of `storage`.
"""

from __future__ import annotations

import io
import math
import os
import re
import stat
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy

from ilde.envs.base import Array

LIMIT_BYTES = 8 * 2**30
"""What a file may expand to in memory."""

CHUNK_BYTES = 2**20
MAX_ENTRIES = 32
MAX_HEADER_BYTES = 16 * 2**20
MAX_ARRAY_HEADER = 512
HEADER = "header"
NOT_OURS = "not a demonstration file; `ilde demos import` reads other formats"
PICKLE = "contains a Python pickle; refused, because it could run code"


class Layout(NamedTuple):
    """What an array's own header declares."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]


# The file's own length, in a private extra field of the first entry: the end of a truncated zip cannot tell it.
_LENGTH_FIELD = struct.Struct("<HHQ")
_LENGTH_FIELD_ID = 0x4C49
_LENGTH_FIELD_AT = 30 + len(f"{HEADER}.npy")
_BINARY_PICKLE = re.compile(rb"\x80[\x02-\x0f]")
_TEXT_PICKLE = re.compile(rb"[(\]})][dlt]?[pq]|c[\w.]+\n\w+\n")


class FormatError(ValueError):
    """A file breaks a rule of the format; the loader turns it into one line with the file's name."""


def write(path: Path, header: bytes, arrays: Mapping[str, Array]) -> None:
    """Write a demonstration file; the same content gives the same bytes."""
    write_whole(path, lambda file: _write_zip(file, {HEADER: np.frombuffer(header, np.uint8), **arrays}))


def write_whole(path: Path, fill: Callable[[IO[bytes]], None]) -> None:
    """Write a file that is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself must survive a power cut
    finally:
        os.close(folder)


def read(path: Path, limit_bytes: int = LIMIT_BYTES) -> tuple[bytes, dict[str, Array]]:
    """The header and the arrays of a file; raises `FormatError` for everything that is not such a file."""
    with _directory(path) as (archive, entries):
        layouts = _layouts(archive, entries, limit_bytes)
        if HEADER not in entries:
            raise FormatError(NOT_OURS)
        if _num_bytes(layouts[HEADER]) > MAX_HEADER_BYTES:
            raise FormatError("header is too long")
        arrays = {name: _array(archive, info, layouts[name]) for name, info in entries.items()}
    return arrays.pop(HEADER).tobytes(), arrays


def read_arrays(path: Path, limit_bytes: int = LIMIT_BYTES, unread: Collection[str] = ()) -> dict[str, Array]:
    """The arrays of any `.npz`, with the same care; entries in `unread` are left out, and their bytes untouched."""
    with _directory(path) as (archive, entries):
        wanted = {name: info for name, info in entries.items() if name not in unread}
        layouts = _layouts(archive, wanted, limit_bytes)
        return {name: _array(archive, info, layouts[name]) for name, info in wanted.items()}


def entry_names(path: Path) -> frozenset[str]:
    """The names of the arrays in any `.npz`."""
    with _directory(path) as (_, entries):
        return frozenset(entries)


def check_expansion(num_bytes: int, limit_bytes: int = LIMIT_BYTES) -> None:
    """Refuse what would not fit, before it is allocated."""
    if num_bytes > limit_bytes:
        raise FormatError(f"expands to {_binary_size(num_bytes)} (limit {_binary_size(limit_bytes)})")


@contextmanager
def _directory(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
        raise FormatError("not a regular file")
    with _CappedFile(path) as file:
        _refuse_foreign(file)
        if not zipfile.is_zipfile(file):
            raise FormatError("truncated: the end of the zip archive is missing")
        with _opened_zip(file) as archive:
            yield archive, _entries(archive)


def _layouts(archive: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], limit_bytes: int) -> dict[str, Layout]:
    layouts = {name: _layout(archive, info) for name, info in entries.items()}
    total = sum(max(entries[name].file_size, _num_bytes(layout)) for name, layout in layouts.items())
    check_expansion(total, limit_bytes)
    return layouts


class _CappedFile(io.FileIO):
    """A file that refuses large reads: `zipfile` reads a directory of any declared length in one go."""

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = 2 * CHUNK_BYTES + 1 if size is None or size < 0 else size
        if wanted > 2 * CHUNK_BYTES + 1:
            raise FormatError("damaged: the zip directory is too large")
        return super().read(wanted) or b""


def _write_zip(file: IO[bytes], arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            if name == HEADER:
                info.extra = _LENGTH_FIELD.pack(_LENGTH_FIELD_ID, 8, 0)
            with archive.open(info, "w", force_zip64=array.nbytes >= 2**30) as entry:
                npy.write_array(entry, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    length = file.seek(0, os.SEEK_END)
    file.seek(_LENGTH_FIELD_AT)
    file.write(_LENGTH_FIELD.pack(_LENGTH_FIELD_ID, 8, length))


def _refuse_foreign(file: _CappedFile) -> None:
    start = file.read(_LENGTH_FIELD_AT + _LENGTH_FIELD.size)
    if not start:
        raise FormatError("empty file")
    length = file.seek(-1, os.SEEK_END) + 1
    if _is_pickle(start, last=file.read(1)) or (start.startswith(npy.MAGIC_PREFIX) and _holds_objects(file)):
        raise FormatError(PICKLE)
    if not start.startswith(b"PK\x03\x04"):
        raise FormatError(NOT_OURS)
    if start[30:_LENGTH_FIELD_AT] == f"{HEADER}.npy".encode() and len(start) == _LENGTH_FIELD_AT + _LENGTH_FIELD.size:
        field, _, written = _LENGTH_FIELD.unpack_from(start, _LENGTH_FIELD_AT)
        if field == _LENGTH_FIELD_ID and length < written:
            raise FormatError(f"truncated: {length:,} of {written:,} bytes")
    file.seek(0)


def _is_pickle(start: bytes, last: bytes) -> bool:
    """Whether a file looks like a pickle: protocols 2 and later say so, earlier ones end with the stop sign."""
    return bool(_BINARY_PICKLE.match(start)) or (last == b"." and bool(_TEXT_PICKLE.match(start)))


def _holds_objects(file: _CappedFile) -> bool:
    file.seek(0)
    return _read_layout(file, "array").dtype.hasobject


def _opened_zip(file: _CappedFile) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except FormatError:
        raise
    except Exception as error:  # `zipfile` lets seek, decoding and struct errors through, depending on the damage
        raise FormatError("damaged: the zip directory cannot be read") from error


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    if any(info.filename.endswith((".pkl", ".pickle")) for info in infos):
        raise FormatError(PICKLE)
    if len(infos) > MAX_ENTRIES or not all(info.filename.endswith(".npy") for info in infos):
        raise FormatError(NOT_OURS)
    entries = {info.filename.removesuffix(".npy"): info for info in infos}
    if len(entries) < len(infos):
        raise FormatError("damaged: two entries share a name")
    for name, info in entries.items():
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FormatError(f"damaged: {_quoted(name)} is encrypted or compressed in an unknown way")
    return entries


def _layout(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Layout:
    with _opened(archive, info) as stream:
        layout = _read_layout(stream, info.filename)
    if layout.dtype.hasobject:
        raise FormatError(PICKLE)
    return layout


def _opened(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(info)
    except Exception as error:  # as above
        raise FormatError(f"damaged: {_quoted(info.filename)} cannot be opened") from error


def _read_layout(stream: IO[bytes], name: str) -> Layout:
    try:
        # Version 1.0 alone: later ones declare their header's length in 32 bits and read it before looking at it.
        if npy.read_magic(stream) != (1, 0):
            raise FormatError(f"damaged: {_quoted(name)} is not in version 1.0 of the array format")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shape, fortran_order, dtype = npy.read_array_header_1_0(stream, max_header_size=MAX_ARRAY_HEADER)
    except FormatError:
        raise
    except Exception as error:
        raise FormatError(f"damaged: {_quoted(name)} has no valid array header") from error
    if any(size < 0 for size in shape):
        raise FormatError(f"damaged: {_quoted(name)} has the shape {shape}")
    return Layout(shape, dtype, "F" if fortran_order else "C")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, layout: Layout) -> Array:
    with _opened(archive, info) as stream:
        _read_layout(stream, info.filename)
        try:
            payload = _payload(stream, _num_bytes(layout))
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise FormatError(f"damaged: {_quoted(info.filename)} cannot be decompressed") from error
    array: Array = np.frombuffer(payload, layout.dtype)
    if layout.dtype == np.bool_:
        array = array.view(np.uint8) != 0  # a stray byte must not become a third truth
    return array.reshape(layout.shape, order=layout.order)


def _payload(stream: IO[bytes], num_bytes: int) -> bytearray:
    """Exactly the declared bytes; memory grows with what is really there, not with what is promised."""
    payload = bytearray()
    while len(payload) < num_bytes:
        chunk = stream.read(min(CHUNK_BYTES, num_bytes - len(payload)))
        if not chunk:
            raise FormatError(f"truncated: an array has {len(payload):,} of {num_bytes:,} bytes")
        payload += chunk
    if stream.read(1):  # reading to the end also makes `zipfile` compare the checksum
        raise FormatError("damaged: an array is longer than its header says")
    return payload


def _num_bytes(layout: Layout) -> int:
    return math.prod(layout.shape) * layout.dtype.itemsize


def _quoted(name: str) -> str:
    return repr(name.removesuffix(".npy")[:40])


def _binary_size(num_bytes: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    capped = min(num_bytes, 2**70)
    power = min(max(capped.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{round(capped / 1024**power, 1):g} {units[power]}"
