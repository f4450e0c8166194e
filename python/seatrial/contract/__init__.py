"""What is PROMISED: the delivery package and the schemas of its files. People write it, every room reads it."""

from seatrial.contract.card import CARD_SECTIONS, Card, FrontMatter, Question, find_questions, parse_card
from seatrial.contract.environment import Environment
from seatrial.contract.features import FeatureSpec, column_problems, resolve_features
from seatrial.contract.files import file_problems, package_files, path_problem
from seatrial.contract.identity import Identity, Task
from seatrial.contract.manifest import (
    MANIFEST,
    Manifest,
    file_sha256,
    manifest_digest,
    model_digest,
    verify_manifest,
    write_manifest,
)
from seatrial.contract.package import (
    BATCHING,
    FILES,
    GOLDEN,
    MODEL,
    OPTIONAL,
    REQUESTS,
    Batching,
    Package,
    load_package,
    read_batching,
    read_document,
    read_manifest,
)
from seatrial.contract.resources import Resources
from seatrial.contract.samples import (
    Golden,
    SampleTensor,
    Tolerance,
    WireRequest,
    read_golden,
    read_lines,
    read_requests,
)
from seatrial.contract.schemas import json_schemas
from seatrial.contract.serving import Serving
from seatrial.contract.signature import DATATYPES, FixedDim, FreeDim, Signature, TensorSpec
from seatrial.contract.slo import STAGES, Percentiles, Slo
from seatrial.contract.source import Problem, Source, fail, parse_yaml, read_text, read_yaml
from seatrial.contract.strict import API_VERSION
from seatrial.contract.units import Cores, Duration, Growth, Rate, Share, Size
from seatrial.contract.validation import Checked, validate

__all__ = [
    "API_VERSION",
    "BATCHING",
    "CARD_SECTIONS",
    "DATATYPES",
    "FILES",
    "GOLDEN",
    "MANIFEST",
    "MODEL",
    "OPTIONAL",
    "REQUESTS",
    "STAGES",
    "Batching",
    "Card",
    "Checked",
    "Cores",
    "Duration",
    "Environment",
    "FeatureSpec",
    "FixedDim",
    "FreeDim",
    "FrontMatter",
    "Golden",
    "Growth",
    "Identity",
    "Manifest",
    "Package",
    "Percentiles",
    "Problem",
    "Question",
    "Rate",
    "Resources",
    "SampleTensor",
    "Serving",
    "Share",
    "Signature",
    "Size",
    "Slo",
    "Source",
    "Task",
    "TensorSpec",
    "Tolerance",
    "WireRequest",
    "column_problems",
    "fail",
    "file_problems",
    "file_sha256",
    "find_questions",
    "json_schemas",
    "load_package",
    "manifest_digest",
    "model_digest",
    "package_files",
    "parse_card",
    "parse_yaml",
    "path_problem",
    "read_batching",
    "read_document",
    "read_golden",
    "read_lines",
    "read_manifest",
    "read_requests",
    "read_text",
    "read_yaml",
    "resolve_features",
    "validate",
    "verify_manifest",
    "write_manifest",
]
