"""Files as an attacker would send them, byte by byte: their pickles end the process that opens them; none is made here."""

# ruff: noqa: E501 - bytes do not break at words

from __future__ import annotations

import zipfile
from pathlib import Path

PICKLES = {
    "alone, protocol 0": b"cposix\n_exit\np0\n(I3\ntp1\nRp2\n.",
    "alone, protocol 1": b"cposix\n_exit\nq\x00(K\x03tq\x01Rq\x02.",
    "alone, protocol 2": b"\x80\x02cposix\n_exit\nq\x00K\x03\x85q\x01Rq\x02.",
    "alone, protocol 3": b"\x80\x03cposix\n_exit\nq\x00K\x03\x85q\x01Rq\x02.",
    "alone, protocol 4": b"\x80\x04\x95\x19\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x05_exit\x94\x93\x94K\x03\x85\x94R\x94.",
    "alone, protocol 5": b"\x80\x05\x95\x19\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x05_exit\x94\x93\x94K\x03\x85\x94R\x94.",
    "in a list, protocol 0": b"(lp0\ncposix\n_exit\np1\n(I3\ntp2\nRp3\na.",
    "in a list, protocol 1": b"]q\x00cposix\n_exit\nq\x01(K\x03tq\x02Rq\x03a.",
    "in a list, protocol 2": b"\x80\x02]q\x00cposix\n_exit\nq\x01K\x03\x85q\x02Rq\x03a.",
    "in a list, protocol 3": b"\x80\x03]q\x00cposix\n_exit\nq\x01K\x03\x85q\x02Rq\x03a.",
    "in a list, protocol 4": b"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00]\x94\x8c\x05posix\x94\x8c\x05_exit\x94\x93\x94K\x03\x85\x94R\x94a.",
    "in a list, protocol 5": b"\x80\x05\x95\x1c\x00\x00\x00\x00\x00\x00\x00]\x94\x8c\x05posix\x94\x8c\x05_exit\x94\x93\x94K\x03\x85\x94R\x94a.",
    "in a dictionary, protocol 0": b"(dp0\nVobs\np1\ncposix\n_exit\np2\n(I3\ntp3\nRp4\ns.",
    "in a dictionary, protocol 1": b"}q\x00X\x03\x00\x00\x00obsq\x01cposix\n_exit\nq\x02(K\x03tq\x03Rq\x04s.",
    "in a dictionary, protocol 2": b"\x80\x02}q\x00X\x03\x00\x00\x00obsq\x01cposix\n_exit\nq\x02K\x03\x85q\x03Rq\x04s.",
    "in a dictionary, protocol 3": b"\x80\x03}q\x00X\x03\x00\x00\x00obsq\x01cposix\n_exit\nq\x02K\x03\x85q\x03Rq\x04s.",
    "in a dictionary, protocol 4": b'\x80\x04\x95"\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x03obs\x94\x8c\x05posix\x94\x8c\x05_exit\x94\x93\x94K\x03\x85\x94R\x94s.',
    "in a dictionary, protocol 5": b'\x80\x05\x95"\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x03obs\x94\x8c\x05posix\x94\x8c\x05_exit\x94\x93\x94K\x03\x85\x94R\x94s.',
}
"""What each holds, and how it was written: `os._exit(3)`, to be called on opening."""


def npy(descr: str, shape: str, payload: bytes = b"") -> bytes:
    """A `.npy` file with this header and whatever bytes."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + payload


def zipped(path: Path, **entries: bytes) -> None:
    """Write a `.npz` of such files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)


OBJECT_ARRAY = npy("'|O'", "(1,)", PICKLES["in a list, protocol 4"])
"""An array of one object that runs code."""
