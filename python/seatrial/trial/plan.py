"""How long each phase of a trial lasts and which rates it steps through. A profile is a plan with a name."""

from __future__ import annotations

from dataclasses import dataclass

from seatrial.errors import UsageError
from seatrial.records import PhaseKind

__all__ = ["PROFILES", "Plan", "Step", "profile"]


@dataclass(frozen=True)
class Step:
    """One loaded phase: a kind of the record, a rate in requests per second, a length in seconds."""

    name: str
    kind: PhaseKind
    rate_per_s: float
    duration_s: float


@dataclass(frozen=True)
class Plan:
    """Lengths in seconds; rates as shares of the target, the peak of the package's expected load."""

    profile: str
    idle_s: float
    smoke_s: float
    smoke_rate_per_s: float
    step_s: float
    step_shares: tuple[float, ...]
    hold_s: float
    headroom_s: float
    headroom_shares: tuple[float, ...]
    bisections: int
    """How often the bracket between the last good and the first bad rate is halved."""
    seed: int = 1

    def smoke(self, target_per_s: float) -> Step:
        """A gentle start: does every answer come back right at all?"""
        return Step("smoke", "smoke", min(self.smoke_rate_per_s, target_per_s), self.smoke_s)

    def steps(self, target_per_s: float) -> list[Step]:
        """Up to the target."""
        return [self._step(share, target_per_s, self.step_s) for share in self.step_shares]

    def hold(self, rate_per_s: float) -> Step:
        """The phase that the promises are judged on."""
        return Step(f"hold-{rate_per_s:g}", "hold", rate_per_s, self.hold_s)

    def headroom(self, target_per_s: float) -> list[Step]:
        """Beyond the target, until the knee or the end of the list."""
        return [self._step(share, target_per_s, self.headroom_s) for share in self.headroom_shares]

    def between(self, good_per_s: float, bad_per_s: float) -> Step:
        """The middle of a bracket."""
        return self._step(1.0, round((good_per_s + bad_per_s) / 2), self.headroom_s)

    def longest_s(self) -> float:
        """Seconds under load when no phase is cut short."""
        beyond = self.headroom_s * (len(self.headroom_shares) + self.bisections)
        loaded = self.step_s * len(self.step_shares) + beyond
        return self.idle_s + self.smoke_s + loaded + self.hold_s

    @staticmethod
    def _step(share: float, target_per_s: float, duration_s: float) -> Step:
        rate = share * target_per_s
        return Step(f"step-{rate:g}", "step", rate, duration_s)


PROFILES: dict[str, Plan] = {
    "quick": Plan(
        profile="quick",
        idle_s=3,
        smoke_s=5,
        smoke_rate_per_s=100,
        step_s=5,
        step_shares=(0.25, 0.5, 0.75, 1.0),
        hold_s=20,
        headroom_s=4,
        headroom_shares=(2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0),
        bisections=2,
    )
}


def profile(name: str) -> Plan:
    """The plan of a profile.

    >>> profile("quick").steps(400)[0]
    Step(name='step-100', kind='step', rate_per_s=100.0, duration_s=5)
    """
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(PROFILES)
        raise UsageError(f"there is no profile `{name}`", hint=f"the profiles are: {known}") from None
