"""Running a model to learn about it, in a process of its own under a time-out and a memory limit."""

from seatrial.check.probe.parent import Job, ProbeResult, run_probe

__all__ = ["Job", "ProbeResult", "run_probe"]
