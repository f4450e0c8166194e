"""The flow before production: check, serve, golden rows, load, verdict, record, report."""

from seatrial.trial.golden import GoldenRow, ask, compare_golden
from seatrial.trial.knee import Budget, StepResult, judge_step, knee_of
from seatrial.trial.plan import PROFILES, Plan, Step, profile
from seatrial.trial.verdict import Evidence, judge, promises

__all__ = [
    "PROFILES",
    "Budget",
    "Evidence",
    "GoldenRow",
    "Plan",
    "Step",
    "StepResult",
    "ask",
    "compare_golden",
    "judge",
    "judge_step",
    "knee_of",
    "profile",
    "promises",
]
