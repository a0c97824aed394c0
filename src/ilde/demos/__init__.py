"""Demonstrations: in memory, on disk, recorded, bundled."""

from ilde.demos.bundled import resolve
from ilde.demos.demonstrations import Demonstrations, Episode
from ilde.demos.header import Header
from ilde.demos.in_memory import from_arrays
from ilde.demos.recording import record
from ilde.demos.storage import load, save

__all__ = ["Demonstrations", "Episode", "Header", "from_arrays", "load", "record", "resolve", "save"]
