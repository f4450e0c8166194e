"""What `seatrial bench run` prints: one JSON object for machines, a small table for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.bench import LoadResult
    from seatrial.records import LoadSummary

__all__ = ["document", "text"]


def document(summary: LoadSummary, result: LoadResult, *, target: str, command: str) -> dict[str, Any]:
    """The JSON form; its first keys are those that spec and docs promise."""
    from seatrial.bench import QUANTILE_RULE

    found = summary.model_dump(mode="json", exclude={"series", "stages_ms"})
    for name in ("response_ms", "service_ms", "late_ms"):
        found[name] = _figures(getattr(summary, name))
    done = result.done or {}
    found["generator"].update({k: done.get(k) for k in ("sockets", "retries", "run_queue_wait_s")})
    found.update(
        target=target,
        command=command,
        verdict=_verdict(summary, result),
        first_error=done.get("first_error"),
        rule=QUANTILE_RULE,
        stages_ms={name: stage.model_dump() for name, stage in summary.stages_ms.items()},
        series=[point.model_dump() for point in summary.series],
    )
    return found


def _figures(percentiles: Any) -> dict[str, Any]:
    quantiles = percentiles.quantiles
    return {
        **{name: q.value for name, q in quantiles.items()},
        "max": percentiles.max,
        "mean": percentiles.mean,
        "n": percentiles.n,
        "bounds": {name: [q.lower, q.upper] if q.certified else None for name, q in quantiles.items()},
        "needs": {name: q.needs for name, q in quantiles.items() if not q.certified},
    }


def _verdict(summary: LoadSummary, result: LoadResult) -> str:
    if result.died:
        return result.died
    if summary.generator.saturated:
        return f"generator saturated: the figures are lower bounds ({summary.generator.why})"
    return "cut short" if summary.cut_short else "measured"


def text(summary: LoadSummary, result: LoadResult) -> str:
    """A small table for people; no percentile without its sample size."""
    from seatrial.records import figure_text

    figures = [summary.response_ms, summary.service_ms, summary.late_ms]
    kind = (
        "closed loop"
        if summary.mode == "closed"
        else f"open loop, {summary.arrivals} {summary.rate_per_s:g}/s"
    )
    seed = "" if summary.seed is None else f", seed {summary.seed}"
    counts = {
        "intended": summary.intended, "sent": summary.sent, "completed": summary.completed, "ok": summary.ok,
        **summary.errors, "not sent": summary.not_sent,
    }  # fmt: skip
    rates = {
        "offered": summary.offered_per_s,
        "achieved": summary.achieved_per_s,
        "goodput": summary.goodput_per_s,
    }
    rows: list[tuple[str, ...]] = [("ms", "response", "service", "late")]
    rows += [(name, *(_cell(f.quantiles[name]) for f in figures)) for name in figures[0].quantiles]
    rows.append(("max", *("-" if f.max is None else figure_text(f.max) for f in figures)))
    rows.append(("n", *(f"{f.n:,}" for f in figures)))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    table = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    lines = [
        f"{kind}, {summary.duration_s:.3g} s{seed}",
        "  ".join(f"{name} {count:,}" for name, count in counts.items()),
        "  ".join(f"{name} {figure_text(rate)}/s" for name, rate in rates.items()),
        *table,
        _verdict(summary, result),
    ]
    if result.done and result.done.get("first_error"):
        lines.append(f"first error: {result.done['first_error']}")
    return "\n".join(lines)


def _cell(quantile: Any) -> str:
    from seatrial.records import figure_text

    if quantile.value is None:
        return "-"
    if not quantile.certified:
        return f"{figure_text(quantile.value)} (n too small: needs {quantile.needs:,})"
    return f"{figure_text(quantile.value)} [{figure_text(quantile.lower)}, {figure_text(quantile.upper)}]"
