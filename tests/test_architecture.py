"""The shape of the package, read from its source: who may import whom, what is never used, how long things get."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import ilde

ROOT = Path(ilde.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))

LAYERS: tuple[tuple[str, ...], ...] = (
    ("data", "randomness", "allocation", "patience", "interrupts"),
    ("envs", "nets", "methods", "fields", "limits", "theory"),
    ("demos", "runs"),
    ("rewards", "learners", "acting"),
    ("config", "collector", "evaluation"),
    ("trainer", "reports", "settings", "arguments"),
    ("prepare", "policies"),
    ("launch", "video", "export"),
    ("watching", "bench", "api", "experiments"),
    ("cli",),
    ("__init__", "__main__"),
)
"""A module or package imports itself and what stands above it, nothing beside or below."""

PICKLERS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "jsonpickle", "shelve", "marshal"}
RUNNERS = {"eval", "exec", "compile", "__import__"}

each_source = pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))


@cache
def tree(source: Path) -> ast.Module:
    return ast.parse(source.read_text(encoding="utf-8"))


def part(source: Path) -> str:
    """The top-level module or package a file belongs to."""
    return source.relative_to(ROOT).with_suffix("").parts[0]


def imported(source: Path) -> Iterator[str]:
    """The dotted names a file imports, inside functions too."""
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(name: str) -> int:
    return next((depth for depth, names in enumerate(LAYERS) if name in names), -1)


def test_every_part_has_its_layer_and_every_layer_exists() -> None:
    assert {part(source) for source in SOURCES} == {name for names in LAYERS for name in names}


@each_source
def test_imports_point_upwards(source: Path) -> None:
    if source == ROOT / "__init__.py":
        return  # The public names come from everywhere.
    parts = {name.split(".")[1] for name in imported(source) if name.startswith("ilde.")} - {part(source)}
    modules = {name for name in parts if layer(name) >= 0}
    assert {name for name in modules if layer(name) >= layer(part(source))} == set()


@each_source
def test_nothing_unpickles(source: Path) -> None:
    assert PICKLERS.isdisjoint(name.split(".")[0] for name in imported(source))
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.keyword):
            assert node.arg not in ("weights_only", "allow_pickle") or ast.unparse(node.value) == (
                "True" if node.arg == "weights_only" else "False"
            ), f"{source}:{node.value.lineno}"
        if isinstance(node, ast.Attribute):
            assert ast.unparse(node) not in ("torch.load", "torch.save"), f"{source}:{node.lineno}"


@each_source
def test_nothing_runs_text_as_code(source: Path) -> None:
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in RUNNERS, f"{source}:{node.lineno}"


@each_source
def test_every_numpy_archive_is_read_without_pickle(source: Path) -> None:
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "np.load",
            "numpy.load",
            "np.lib.format.read_array",
        ):
            assert "allow_pickle" in {word.arg for word in node.keywords}, f"{source}:{node.lineno}"


@each_source
def test_no_generator_is_global(source: Path) -> None:
    names = {ast.unparse(node) for node in ast.walk(tree(source)) if isinstance(node, ast.Attribute)}
    drawn = {name.removeprefix("np.random.") for name in names if name.startswith("np.random.")}
    assert {name.split(".")[0].split("(")[0] for name in drawn} <= {"default_rng", "SeedSequence", "Generator"}
    assert {"torch.manual_seed", "torch.random"}.isdisjoint(names)
    assert "random" not in imported(source)


@each_source
def test_files_and_functions_stay_short(source: Path) -> None:
    assert len(source.read_text(encoding="utf-8").splitlines()) <= 300
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 50, f"{node.name} has more than 50 lines"


LEARNING = ("rewards", "learners", "nets", "trainer", "collector", "acting")
READERS = {"rewards/simple.py", "rewards/base.py"}
"""The term `env`, and the record that hands transitions to the terms."""


@pytest.mark.parametrize("source", [s for s in SOURCES if part(s) in LEARNING], ids=lambda p: str(p.relative_to(ROOT)))
def test_nothing_that_learns_reads_the_true_reward(source: Path) -> None:
    reads = any(isinstance(node, ast.Attribute) and node.attr == "env_reward" for node in ast.walk(tree(source)))
    assert not reads or str(source.relative_to(ROOT)) in READERS
