"""Golden rows: requests stored with their expected outputs, asked of the running server and compared.

Floats may lie `abs + rel * |golden|` apart, with the tolerance of their row. Integers, booleans and strings must be
equal; NaN and infinities must stand at the same places and never count as within tolerance elsewhere.
"""

from __future__ import annotations

import http.client
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from seatrial.contract import Golden, SampleTensor, Tolerance
from seatrial.errors import EngineError
from seatrial.records import GoldenResult, figure_text
from seatrial.trial.bodies import golden_body

__all__ = ["ask", "compare_golden"]

SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def ask(port: int, model: str, rows: Sequence[Golden], timeout_s: float = 30) -> Iterator[dict[str, Any]]:
    """The server's answer to each row, in order, over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        for number, row in enumerate(rows, 1):
            body = golden_body(row)
            connection.request("POST", f"/v2/models/{model}/infer", body.data, dict(body.headers))
            response = connection.getresponse()
            answer = json.loads(response.read())
            if response.status != 200:
                raise EngineError(
                    f"golden row {number} was answered with {response.status}: {answer.get('error', answer)}",
                    hint="the row or the signature is wrong; `seatrial check` compares them",
                )
            yield answer
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise EngineError(f"the server did not answer a golden row: {error}") from error
    finally:
        connection.close()


def compare_golden(rows: Sequence[Golden], answers: Sequence[dict[str, Any]]) -> GoldenResult:
    """Holds the answers against the stored outputs."""
    agreed, largest, worst, fault = 0, 0.0, "", ""
    for number, (row, answer) in enumerate(zip(rows, answers, strict=True), 1):
        got = {o["name"]: o for o in answer.get("outputs", [])}
        faults = [f for want in row.outputs if (f := output_fault(want, got.get(want.name), row.tolerance))]
        agreed += not faults
        if faults and not fault:
            fault = f"row {number}: {faults[0]}"
        for want in row.outputs:
            error = output_error(want, got.get(want.name))
            if error > largest:
                largest, worst = error, f"row {number}, output `{want.name}`: off by {figure_text(error)}"
    loosest = max((row.tolerance for row in rows), key=lambda t: (t.rel, t.abs), default=Tolerance())
    return GoldenResult(
        rows=len(rows),
        agreed=agreed,
        max_abs_error=largest,
        tolerance=f"|error| <= {loosest.abs:g} + {loosest.rel:g} * |golden|",
        worst=fault or worst,
    )


def output_fault(want: SampleTensor, got: dict[str, Any] | None, tolerance: Tolerance) -> str | None:
    """What is wrong with one output; None when it agrees."""
    if got is None:
        return f"output `{want.name}` is missing"
    if got["shape"] != want.shape:
        return f"output `{want.name}` has shape {got['shape']}, expected {want.shape}"
    floats = _is_float(want)
    wanted, found = list(_values(want.data, floats)), list(_values(got["data"], floats))
    if len(wanted) != len(found):
        return f"output `{want.name}` has {len(found)} values, expected {len(wanted)}"
    for index, (w, f) in enumerate(zip(wanted, found, strict=True)):
        if not (_close(w, f, tolerance) if floats else w == f):
            return f"output `{want.name}`[{index}] is {f}, expected {w}"
    return None


def output_error(want: SampleTensor, got: dict[str, Any] | None) -> float:
    """The largest absolute difference of finite floats; 0 where nothing can be compared."""
    if got is None or not _is_float(want):
        return 0.0
    pairs = zip(_values(want.data, True), _values(got["data"], True), strict=False)
    return max((abs(w - f) for w, f in pairs if math.isfinite(w) and math.isfinite(f)), default=0.0)


def _is_float(output: SampleTensor) -> bool:
    return output.datatype.startswith(("FP", "BF"))


def _close(want: float, got: float, tolerance: Tolerance) -> bool:
    if not math.isfinite(want) or not math.isfinite(got):
        return (math.isnan(want) and math.isnan(got)) or want == got
    return abs(want - got) <= tolerance.abs + tolerance.rel * abs(want)


def _values(data: Any, floats: bool) -> Iterator[Any]:
    """The values of nested lists, in order; with `floats` as floats, the three non-finite names included."""
    if isinstance(data, list):
        for item in data:
            yield from _values(item, floats)
    elif floats:
        yield SPECIAL[data] if isinstance(data, str) else float(data)
    else:
        yield data
