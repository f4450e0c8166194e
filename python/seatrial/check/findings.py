"""What a check says: findings with a stable code, a severity, an owner and a cure, and the table of all codes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from seatrial.contract import Batching

__all__ = ["FINDINGS", "CheckReport", "Finding", "FindingKind", "finding"]

Severity = Literal["error", "warning", "note"]
Owner = Literal["algorithm", "infra", "both"]


@dataclass(frozen=True)
class FindingKind:
    """One line of the table: what a code means and who acts on it."""

    code: str
    title: str
    severity: Severity
    owner: Owner
    hint: str


@dataclass(frozen=True)
class Finding:
    """One thing found in one place. `file` is relative to the package, `line` counts from 1."""

    code: str
    severity: Severity
    file: str
    line: int | None
    owner: Owner
    text: str
    hint: str

    def where(self) -> str:
        """`file:line`, or the file alone."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class CheckReport:
    """The findings of a package, worst first, and what is known about batching."""

    findings: tuple[Finding, ...]
    batching: Batching | None
    level: str = "L"
    is_draft: bool = True

    @property
    def ok(self) -> bool:
        """True when there is no error; warnings and notes are allowed."""
        return not any(f.severity == "error" for f in self.findings)

    def count(self, severity: Severity) -> int:
        """How many findings have this severity."""
        return sum(f.severity == severity for f in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The machine-readable form."""
        b = self.batching or Batching("none", None, "not probed, or probed with another model file")
        batching = {"mode": b.mode, "axis": b.axis, "why": b.why}
        return {
            "level": self.level,
            "ok": self.ok,
            "draft": self.is_draft,
            "findings": [asdict(f) for f in self.findings],
            "batching": batching,
        }


def finding(code: str, file: str, text: str, *, line: int | None = None, hint: str | None = None) -> Finding:
    """A finding of the table's kind, in one place."""
    kind = FINDINGS[code]
    return Finding(code, kind.severity, file, line, kind.owner, text, hint or kind.hint)


def _table(rows: str) -> dict[str, FindingKind]:
    kinds: dict[str, FindingKind] = {}
    for row in filter(None, (r.strip() for r in rows.splitlines())):
        code, severity, owner, title, hint = (cell.strip() for cell in row.split("|"))
        kinds[code] = FindingKind(code, title, severity, owner, hint)  # type: ignore[arg-type] # held by a test
    return kinds


# code | severity | owner | title | hint
FINDINGS: dict[str, FindingKind] = _table("""
PKG001 | error | both | A file of the package is missing | `seatrial init` writes a draft of every file
PKG002 | error | both | A link or special file lies in the package | copy the file itself into the package
PKG003 | error | algorithm | A file can execute code when it is loaded | remove it; deliver ONNX, safetensors or plain data
PKG004 | error | both | A file cannot be read or is too large | mend the file's rights or size
SCH001 | error | both | A file is no valid YAML or JSON | check indentation, quotes and colons around this line
SCH002 | error | both | A key stands twice | remove one of the two
SCH003 | error | both | A key is unknown | remove it, mend its spelling, or begin it with `x-`
SCH004 | error | both | A key is missing | add it
SCH005 | error | both | A value does not fit | the schema of each file is in `schemas/` and in the reference
SCH006 | error | both | The contract version is another one | write `apiVersion: seatrial/v1`
SCH007 | error | both | A file goes beyond the bounds of reading | flatten or shorten the file
IDN001 | warning | both | An owner has no reachable contact | name a role and a mail list, channel or group handle
IDN002 | warning | algorithm | The licence is not stated | write its SPDX name, such as `Apache-2.0`, or `proprietary`
IDN003 | warning | algorithm | No seed is stated | write `seeds: {training: N}`
IDN004 | warning | both | The rollback class is not stated | choose instant, redeploy or migration
IDN005 | warning | algorithm | The task is not stated | choose one of the tasks of the reference
QST001 | note | both | A marked question is open | answer it and remove the mark
CRD001 | error | algorithm | The card lacks a section | add the section; `seatrial init` shows all six
CRD002 | warning | algorithm | A section of the card is empty or still template text | write two sentences of your own
CRD003 | error | algorithm | The card has no front matter | begin the card with a block between two `---` lines
SIG001 | error | both | Signature and graph have different inputs or outputs | take the names from the graph
SIG002 | error | both | Signature and graph differ in datatype | write the graph's datatype, or export the model anew
SIG003 | error | both | Signature and graph differ in rank | write one dimension for each of the graph's
SIG004 | error | both | The signature promises a size that the graph lacks | write the graph's size or export it as dynamic
SIG005 | error | both | Signature and graph differ in order | put the tensors into the order of the graph
SIG006 | error | both | Ids outside the table are declared legal | write `range: [0, rows - 1]`
SIG007 | note | both | The signature fixes a free dimension without a reason | write `{size: N, why: ...}`
SIG008 | note | both | A free dimension has no maximum | write the largest size that a request may ask for
MAN001 | error | both | The manifest is not fresh | `seatrial init` wrote it; write it anew after a change
MOD001 | error | algorithm | The model file is no ONNX model | deliver the exported .onnx file
MOD002 | error | algorithm | The model's graph is broken | export it anew and check it with onnx.checker
MOD003 | error | algorithm | The model file is too large for one protobuf | save it with external data
MOD004 | error | both | The IR is newer than the runtime takes | export with an older IR version, or raise the runtime
MOD005 | error | both | The opset is newer than the runtime takes | export with an older opset, or raise the runtime
MOD006 | warning | algorithm | The opset is older than the runtime promises to run | export with opset 17 or newer
MOD007 | error | both | A node needs an operator library that is not declared | replace the node by standard operators
MOD008 | note | infra | An operator exists in this runtime only | keep the runtime, or export without it
MOD009 | error | algorithm | A node's operator does not exist in its opset | export the model anew
MOD010 | error | algorithm | An input or output is no tensor | export plain tensors; for a classifier turn ZipMap off
MOD011 | error | algorithm | The model was exported in training mode | call `model.eval()` before the export
MOD012 | note | algorithm | A domain is imported twice | the runtime takes it; the next export may drop it
MOD013 | warning | algorithm | An answer may depend on its batch mates | quantise statically (QDQ), or serve without batching
MOD014 | warning | algorithm | The answer is random | fix the seed in the graph, or sample outside the model
EXT001 | error | algorithm | External data lies outside the package | keep the data beside the model file
EXT002 | error | algorithm | An external data file is missing | bring the file together with the model
EXT003 | error | algorithm | External data is no plain single file | copy the data file itself beside the model
EXT004 | error | algorithm | External data does not fit its file | save the model's external data anew
EXT005 | error | algorithm | External tensors overlap | save the model's external data anew
ENV001 | error | both | environment.yaml differs from the model file | write the opset and IR that the file has
ENV002 | warning | algorithm | No lock file is named | name the lock file of the training environment and its sha256
ENV003 | error | algorithm | The lock file differs from its hash | write the sha256 of the lock file
ENV004 | error | infra | The runtime version is not supported | use onnxruntime 1.24 to 1.32
ENV005 | error | algorithm | The lock file is not complete | pin every line with `==` and a hash
SLO001 | error | both | Percentiles do not rise | p50 <= p95 <= p99
SLO002 | error | both | A stage may take longer than the whole | lower the stage's bound or raise the total
SLO003 | warning | both | No latency bound is stated | without p99 a trial has nothing to judge
SLO004 | error | both | The peak is below the mean | state the highest load of a normal day as peak
SRV001 | note | infra | Batching is on but not possible | set `policy: off`; the engine obeys the finding
SRV002 | error | infra | Buckets do not rise | sort them and drop doubles
SRV003 | error | infra | The queue holds less than one batch | make `queue.rows` at least `batching.max_rows`
RES001 | error | infra | Fewer replicas at most than at least | make `max` at least `min`
SMP001 | error | algorithm | A sample line is broken | write one request object a line
SMP002 | error | algorithm | A sample does not fit the signature | correct the sample or the signature
SMP003 | warning | algorithm | There are no samples | put real requests into samples/requests.jsonl
SMP004 | warning | algorithm | There are no golden rows | `seatrial init --sample` writes them
SMP005 | note | algorithm | Only the first samples were judged | level L stops after a bounded number of lines
SMP006 | note | algorithm | The samples are synthetic | replace them by real requests
FEA001 | error | algorithm | A feature feeds no input of the model | name an input of signature.yaml
FEA002 | error | algorithm | A column of an input is not filled by one feature | fill every column of every input once
EVI001 | warning | infra | Evidence belongs to another model file | probe anew; evidence of another file is not used
EVI002 | note | both | The package is a DRAFT | a trial writes evidence; a draft cannot enter a canary
""")
