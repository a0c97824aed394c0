"""The paper as data: every number it prints, what it claims of them, and the runs it takes to check it."""

from ilde.experiments.paper.claims import Hypothesis, PaperClaim, Trial, hypotheses, motivation, paper_claims
from ilde.experiments.paper.tables import PaperTable, PaperTask, PaperValue, ProtocolPoint, paper_table, paper_tables

__all__ = [
    "Hypothesis",
    "PaperClaim",
    "PaperTable",
    "PaperTask",
    "PaperValue",
    "ProtocolPoint",
    "Trial",
    "hypotheses",
    "motivation",
    "paper_claims",
    "paper_table",
    "paper_tables",
]
