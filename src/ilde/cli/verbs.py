"""What a verb is, and how its words are read: one-line errors, did-you-mean, settings by their dotted names.

argparse alone would take the value of an unknown option for a positional argument; unknown options are therefore set
apart before it sees the line.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn


class UsageError(Exception):
    """A line that cannot be read; like the library's `UserError`, but importing nothing."""


class LineParser(argparse.ArgumentParser):
    """argparse whose errors are one line, raised rather than printed."""

    def error(self, message: str) -> NoReturn:
        """Raise with the remedy."""
        raise UsageError(f"{message.removeprefix('argument ')}; see `{self.prog} --help`")

    @property
    def options(self) -> set[str]:
        """All option names, with their dashes."""
        return set(self._option_string_actions)

    def refuse(self, name: str, settings: Collection[str]) -> NoReturn:
        """Raise for an option that is neither the parser's own nor a setting."""
        known = [*settings, *(option[2:] for option in self.options if option.startswith("--"))]
        # `--learning-rate` is what people try before `--ppo.learning-rate`.
        leaves = [setting for setting in settings if setting.rpartition(".")[2] == name.replace("_", "-")]
        hint = did_you_mean(name, known, leaves, mark="--") or f"; see `{self.prog} --help`"
        raise UsageError(f"unknown option --{name}{hint}")


@dataclass(frozen=True)
class Verb:
    """One verb of the command line."""

    name: str
    """One word, or two: `demos list`."""
    summary: str
    example: str
    run: Callable[[argparse.Namespace], int]
    """Does the work and returns the exit code."""
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    """Adds what the verb takes beside --json and --debug."""
    settings: Callable[[], Collection[str]] | None = None
    """Further options, named by dots; they reach `run` as pairs in `settings`."""
    details: str = ""
    """What the help says after the summary."""

    def parser(self) -> LineParser:
        """Reads this verb's arguments."""
        parser = LineParser(
            prog=f"ilde {self.name}",
            description=f"{self.summary[0].upper()}{self.summary[1:]}.\n\n{self.details}".rstrip(),
            epilog=f"example:\n  {self.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.arguments(parser)
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
        return parser

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """The arguments, with `settings` as (dotted name, text) in the order given, and the `words` themselves."""
        parser = self.parser()
        own = parser.options
        rest, settings = split_settings(words, own)
        if settings:
            names = self.settings() if self.settings is not None else ()
            for name, _ in settings:
                if name.replace("_", "-") not in names:
                    parser.refuse(name, names)
        if any(value is None for _, value in settings):
            parser.error(f"--{next(name for name, value in settings if value is None)} needs a value")
        args = parser.parse_args(rest)
        args.settings = [(name, value) for name, value in settings if value is not None]
        args.words = list(words)
        return args


def split_settings(words: Sequence[str], own: Collection[str]) -> tuple[list[str], list[tuple[str, str | None]]]:
    """Part a line into what the parser knows and `--name value` or `--name=value` pairs that it does not."""
    rest: list[str] = []
    settings: list[tuple[str, str | None]] = []
    left = list(reversed(words))
    while left:
        word = left.pop()
        option, equals, value = word.partition("=")
        if not option.startswith("--") or option in own:
            rest.append(word)
        elif equals:
            settings.append((option[2:], value))
        else:
            has_value = bool(left) and not left[-1].startswith("--")
            settings.append((option[2:], left.pop() if has_value else None))
    return rest, settings


def did_you_mean(name: str, known: Collection[str], first: Sequence[str] = (), mark: str = "") -> str:
    """The end of an error about an unknown name."""
    close = [*first, *get_close_matches(name, known, 1)]
    return f"; did you mean {mark}{close[0]}?" if close else ""


def whole_number(text: str) -> int:
    """A count of at least 1; `1e6` is how people write a number of steps."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not (number >= 1 and number.is_integer()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(number)


def natural_number(text: str) -> int:
    """A seed."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def amount(text: str) -> float:
    """A number of at least 0, such as a part of a GPU."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number


def minutes(text: str) -> float:
    """A length of time above 0."""
    number = amount(text)
    if number == 0:
        raise argparse.ArgumentTypeError(f"{text!r}: name a time above 0")
    return number


def time_argument(parser: argparse.ArgumentParser) -> None:
    """How long a command that trains may take."""
    parser.add_argument(
        "--minutes", type=minutes, metavar="M", help="save and stop after so long, exit code 124; can be gone on with"
    )
