"""Memory that stays with the process: images and their gradients come and go by the megabyte, thousands of times."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of glibc's `mallopt`."""
LARGEST_KEPT = 32 * 2**20
"""Bytes of one allocation, beyond which glibc always asks the system."""


def keep_freed_memory() -> bool:
    """Let the C library keep what is freed instead of handing it back to the system; says whether it could.

    Otherwise every minibatch of images asks for the same pages again, and the system clears each of them again. The
    process then holds on to the most it ever needed.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # another C library
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_KEPT)) and bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1))
