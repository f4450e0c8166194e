"""The flow before production: check, serve, golden rows, load, verdict, record."""

from seatrial.trial.flow import TrialOptions, TrialResult, budget_of, keep_evidence, run_trial
from seatrial.trial.golden import ask, compare_golden
from seatrial.trial.knee import Budget, StepResult, judge_step, knee_of
from seatrial.trial.plan import PROFILES, Plan, Step, profile
from seatrial.trial.verdict import Evidence, judge, promises

__all__ = [
    "PROFILES",
    "Budget",
    "Evidence",
    "Plan",
    "Step",
    "StepResult",
    "TrialOptions",
    "TrialResult",
    "ask",
    "budget_of",
    "compare_golden",
    "judge",
    "judge_step",
    "keep_evidence",
    "knee_of",
    "profile",
    "promises",
    "run_trial",
]
