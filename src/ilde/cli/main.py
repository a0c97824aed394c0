"""The entry point: finds the verb, runs it, and turns every expected failure into one line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version

from ilde.cli import (
    demos,
    evaluate,
    exchange,
    grid,
    lists,
    products,
    record,
    report,
    reproduce,
    streams,
    theory,
    train,
)
from ilde.cli.printing import printable
from ilde.cli.verbs import UsageError, Verb, did_you_mean

VERBS: tuple[Verb, ...] = (
    *train.VERBS,
    *grid.VERBS,
    *reproduce.VERBS,
    *evaluate.VERBS,
    *demos.VERBS,
    *record.VERBS,
    *exchange.VERBS,
    *lists.VERBS,
    *report.VERBS,
    *products.VERBS,
    *theory.VERBS,
)

INTERRUPTED = 130
MISTAKE = 2
FAILURE = 1


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Read when torch is first imported: threads that wait by spinning slow a busy machine several times over.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    streams.prepare()
    try:
        code = _carry_out(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        streams.give_up_output()
        return FAILURE
    except OSError as error:
        if not streams.output_lost():
            raise
        streams.give_up_output()
        print(f"ilde: standard output: {error.strerror}; write to another place", file=sys.stderr)
        return FAILURE


def _carry_out(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except SystemExit as leaving:  # argparse, after --help
        return leaving.code if isinstance(leaving.code, int) else 0
    except BaseException as error:
        explained = explain(error)
        if explained is None:
            raise
        if "--debug" in words:
            traceback.print_exc()
        line, code = explained
        # Words of a stranger's file may stand in it, and must not command the terminal.
        print(f"ilde: {printable(' '.join(line.split()))}", file=sys.stderr)
        return code


def _dispatch(words: list[str]) -> int:
    if len(words) > 1 and words[0] == "help":
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        print(_overview(VERBS))
        return 0
    if words[0] == "--version":
        print(f"ilde {version('ilde')}")
        return 0
    for verb in VERBS:
        name = verb.name.split()
        if words[: len(name)] == name:
            return verb.run(verb.parse(words[len(name) :]))
    return _dispatch_group(words)


def _dispatch_group(words: list[str]) -> int:
    """A verb of two words of which only the first was right, or none."""
    group = [verb for verb in VERBS if verb.name.startswith(f"{words[0]} ")]
    if not group:
        known = list(dict.fromkeys(verb.name.split()[0] for verb in VERBS))
        raise UsageError(f"unknown verb {words[0]!r}{did_you_mean(words[0], known) or '; see `ilde --help`'}")
    if len(words) == 1 or words[1] in ("-h", "--help"):
        print(_overview(group))
        return 0
    known = [verb.name.split()[1] for verb in group]
    hint = did_you_mean(words[1], known) or f"; there are {', '.join(known)}"
    raise UsageError(f"unknown verb {' '.join(words[:2])!r}{hint}")


def _overview(verbs: Sequence[Verb]) -> str:
    width = max(len(verb.name) for verb in verbs)
    lines = [f"  {verb.name:<{width}}  {verb.summary}" for verb in verbs]
    return "\n".join(
        (
            "usage: ilde VERB ...",
            "",
            "Imitation Learning with Double Exploration: beat a demonstrator from a fragment of its demonstration.",
            "",
            *lines,
            "",
            "`ilde VERB --help` says more.",
            "",
            "example:",
            f"  {verbs[0].example}",
        )
    )


def explain(error: BaseException) -> tuple[str, int] | None:
    """The line and exit code of a failure that was foreseen; None for a defect, which keeps its traceback."""
    match error:
        case UsageError():
            return str(error), MISTAKE
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case FloatingPointError():
            return str(error), FAILURE
    # Whoever raised one of the following has paid for the import already.
    from ilde.data import UserError

    if isinstance(error, UserError):
        return str(error), error.exit_code
    if _is_out_of_memory(error):
        return "out of memory: try a smaller --num-envs or --rollout-steps, or --device cpu", MISTAKE
    return None


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    # torch's class for GPUs is a RuntimeError too; for CPUs there is only the words.
    return isinstance(error, RuntimeError) and any(
        words in str(error) for words in ("out of memory", "can't allocate memory")
    )
