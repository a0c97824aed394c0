"""Files injured at random."""

from __future__ import annotations

import numpy as np


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three random injuries: bits flipped, pieces cut, copied or overwritten, the end lost."""
    mutant = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        start, stop = sorted(int(place) for place in rng.integers(0, len(mutant) + 1, 2))
        stop = min(stop, start + int(rng.integers(1, 64)))
        match rng.integers(0, 6):
            case 0 | 1 if start < len(mutant):
                mutant[start] ^= 1 << int(rng.integers(0, 8))
            case 2:
                mutant[start:stop] = rng.bytes(stop - start)
            case 3:
                del mutant[start:stop]
            case 4:
                mutant[start:start] = mutant[stop : stop + 32]
            case 5 if start > 0:
                del mutant[start:]
    return bytes(mutant)
