"""features.yaml: the ordered rules from raw request fields to the model's inputs. Without it clients send tensors.

What a step does is the native code's business; here is which options it takes and what they are called.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import Field

from seatrial.contract.signature import FreeDim, Signature
from seatrial.contract.strict import Document, Name, Strict, Text
from seatrial.errors import ContractError

__all__ = ["Feature", "FeatureSpec", "column_problems", "resolve_features"]

Index = Annotated[int, Field(strict=True, ge=-(1 << 63), lt=1 << 63)]
Count = Annotated[int, Field(strict=True, ge=0, le=1 << 40)]
Whole = Annotated[int, Field(strict=True)]
Number = Whole | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Side = Literal["left", "right"]
OFFSET = "Added to the index."

# More columns than this are no features of a request but a mistake, and would take long to look through.
MOST_COLUMNS = 1 << 22


class Slice(Strict):
    """Text to a part of it, counted in characters."""

    step: Literal["slice"]
    start: Count = Field(description="The first character that is kept, counted from 0.")
    length: Count = Field(description="How many are kept at most.")


class Split(Strict):
    """Text to the texts between separators; an empty text holds none."""

    step: Literal["split"]
    separator: Text = Field(min_length=1, description="What stands between two entries.")


class ToText(Strict):
    """Whole number to its decimal digits."""

    step: Literal["to_text"]


class ToNumber(Strict):
    """Decimal text to a number."""

    step: Literal["to_number"]


class HashOptions(Strict):
    """How a text becomes a bucket. Nothing has a default, because implementations differ in each."""

    algorithm: Literal["murmur3_32", "murmur3_32_spark", "xxh64"] = Field(
        description="The function; `murmur3_32_spark` takes each byte of the tail as a block of its own."
    )
    seed: Annotated[int, Field(strict=True, ge=0, lt=1 << 64)]
    encoding: Literal["utf-8", "utf-16-le"] = Field(description="The bytes of the text.")
    sign: Literal["unsigned", "signed"] = Field(description="How the bits are read as a number.")
    modulo: Literal["floor", "abs"] = Field(
        description="`floor` is never negative, as in Python; `abs` is the rest of the magnitude."
    )
    buckets: Annotated[int, Field(strict=True, ge=1, lt=1 << 63)]
    offset: Index = Field(0, description=OFFSET)


class Hash(HashOptions):
    """Text to a bucket."""

    step: Literal["hash"]


class UnknownIndex(Strict):
    """An unknown word gets this index, taken as it is."""

    rule: Literal["index"]
    index: Index


class UnknownError(Strict):
    """A request with an unknown word is refused."""

    rule: Literal["error"]


class UnknownSkip(Strict):
    """An unknown entry of a list is left out."""

    rule: Literal["skip"]


class UnknownHash(HashOptions):
    """An unknown word gets a bucket."""

    rule: Literal["hash"]


Unknown = Annotated[
    UnknownIndex | UnknownError | UnknownSkip | UnknownHash,
    Field(discriminator="rule", description="What becomes of a word that the vocabulary does not have."),
]


class Vocabulary(Strict):
    """Text to its place in a list of words."""

    step: Literal["vocabulary"]
    file: Text | None = Field(None, description="A file of the package in UTF-8, one word a line.")
    words: list[Text] | None = Field(None, max_length=100_000, description="The words, instead of a file.")
    offset: Index = Field(0, description="Added to the place, which is counted from 0.")
    unknown: Unknown


class DatePart(Strict):
    """A moment to a part of its local date or time."""

    step: Literal["date_part"]
    part: Literal["year", "month", "day", "day_of_year", "weekday", "hour", "minute"] = Field(
        description="`weekday` is 0 for Monday; `month`, `day` and `day_of_year` begin with 1."
    )
    zone: Text = Field(description="Whose clock is read, such as `Asia/Shanghai` or `UTC`.")
    input: Literal["seconds", "milliseconds", "iso"] = Field(
        description="Since 1970 in UTC, or ISO 8601 text; without an offset a text is local time already."
    )
    offset: Index = Field(0, description="Added to the part.")


class Bucketise(Strict):
    """Number to the place of its bucket."""

    step: Literal["bucketise"]
    edges: list[Number] = Field(min_length=1, max_length=100_000, description="Ascending limits.")
    side: Side = Field(
        description="Where a number on an edge belongs: `right` counts it past the edge, `left` before it."
    )
    offset: Index = Field(0, description=OFFSET)


class Clip(Strict):
    """Number to the nearest one within bounds."""

    step: Literal["clip"]
    min: Number | None = None
    max: Number | None = None


class Log1p(Strict):
    """Number to the natural logarithm of one plus it."""

    step: Literal["log1p"]


class Standardise(Strict):
    """Number less the mean, by the standard deviation."""

    step: Literal["standardise"]
    mean: Number
    std: Number = Field(gt=0)


class MinMax(Strict):
    """Number to its place between two others, 0 to 1."""

    step: Literal["min_max"]
    min: Number
    max: Number


class MultiHot(Strict):
    """Indexes of a list to a row of 0 and 1."""

    step: Literal["multi_hot"]
    size: Count = Field(ge=1, description="Columns of the row.")
    min: Count = Field(0, description="The fewest entries that a list may have.")
    max: Count | None = Field(None, description="The most entries that a list may have.")


class Sequence(Strict):
    """Numbers of a list to a row of fixed length."""

    step: Literal["sequence"]
    length: Count = Field(ge=1, description="Columns of the row.")
    pad: Number = Field(description="What fills up a short list.")
    pad_side: Side = Field(description="Where a short list is filled up.")
    truncate_side: Side = Field(description="Where a long list is cut.")


class Tokenizer(Strict):
    """Text to the tokens of a Hugging Face tokenizer, without padding; the feature's tensor gets their ids."""

    step: Literal["tokenizer"]
    file: Text = Field(description="The tokenizer.json of the package.")
    max_length: Count = Field(ge=1, description="The most tokens of a text, special ones included.")
    truncate_side: Side = Field(description="Where a long text is cut.")
    pad_id: Index = Field(0, description="Fills up short rows where `seatrial.features` joins rows.")
    mask: Text | None = Field(None, description="Model input that gets 1 for a token, 0 for padding.")
    type_ids: Text | None = Field(None, description="Model input that gets the segment of each token.")
    cache_entries: Count = Field(10_000, le=10_000_000, description="Texts whose tokens are kept.")


class Constant(Strict):
    """The same number in every row; the feature has no field."""

    step: Literal["constant"]
    value: Number


Step = Annotated[
    Slice | Split | ToText | ToNumber | Hash | Vocabulary | DatePart | Bucketise | Clip | Log1p | Standardise
    | MinMax | MultiHot | Sequence | Tokenizer | Constant,
    Field(discriminator="step"),
]  # fmt: skip


class MissingError(Strict):
    """A request without the value is refused."""

    rule: Literal["error"]


class MissingValue(Strict):
    """This number is written to every column of the feature."""

    rule: Literal["value"]
    value: Number


class MissingIndicator(Strict):
    """The same, and a column of its own says 1 for missing and 0 for there."""

    rule: Literal["indicator"]
    value: Number
    column: Count


class MissingReplace(Strict):
    """The steps go on as if this raw value had been sent."""

    rule: Literal["replace"]
    value: Flag | Number | Text | list[Text] = Field(alias="with")


Missing = Annotated[
    MissingError | MissingValue | MissingIndicator | MissingReplace, Field(discriminator="rule")
]


class Feature(Strict):
    """One raw field and the columns of the tensor that it becomes."""

    field: Text | None = Field(None, description="Name of the field in the request; none for a constant.")
    type: Literal["string", "integer", "number", "boolean", "list"] | None = Field(
        None, description="What the field may hold. `integer` takes 260.0 as well."
    )
    items: Literal["string", "integer", "number"] | None = Field(None, description="What a list may hold.")
    tensor: Text = Field(description="Name of the model input it feeds.")
    column: Count | None = Field(
        None, description="First column of the tensor that it fills, where several features share one."
    )
    steps: list[Step] = Field(
        default_factory=list,
        max_length=64,
        description="From the raw value to the number: text steps, the one that makes a number, number steps, list step.",
    )
    missing: Missing = Field(
        default_factory=lambda: MissingError(rule="error"), description="What stands for a missing value."
    )
    missing_texts: list[Text] | None = Field(
        None, description="Texts that count as missing here, instead of the document's."
    )
    source: Text | None = Field(None, description="Where the field comes from.")
    description: Text | None = None


class FeatureSpec(Document):
    """The content of features.yaml."""

    kind: Literal["Features"]
    version: Name | None = None
    missing_texts: list[Text] = Field(
        default_factory=list, description="Texts that count as missing, beside null and absent fields."
    )
    features: list[Feature] = Field(max_length=10_000)


def resolve_features(spec: FeatureSpec, signature: Signature) -> dict[str, Any]:
    """The form that the native code reads: the steps, and the tensors that they fill, in the order of the signature."""
    _check_lengths(spec, signature)
    return {
        "tensors": [_target(tensor) for tensor in signature.resolved()["inputs"]],
        "missing_texts": spec.missing_texts,
        "features": [
            f.model_dump(by_alias=True, exclude_none=True, exclude={"source", "description"})
            for f in spec.features
        ],
    }


def column_problems(spec: FeatureSpec, signature: Signature) -> list[str]:
    """What of the model's inputs is filled by no feature, or by several; features of no input are left out."""
    if sum(map(_width, spec.features)) > MOST_COLUMNS:
        return [f"the features fill more than {MOST_COLUMNS} columns"]
    written = Counter(place for feature in spec.features for place in _places(feature))
    found = []
    for tensor in signature.inputs:
        inner = tensor.dims[1:]
        sizes = [size for size in inner if isinstance(size, int)]
        width = math.prod(sizes) if len(sizes) == len(inner) else None
        if width is not None and width > MOST_COLUMNS:
            found.append(f"input `{tensor.name}` has {width} columns: features fill {MOST_COLUMNS} at most")
            continue
        columns = {column for name, column in written if name == tensor.name}
        expected = {None} if width is None else set(range(width))
        for column in sorted(columns ^ expected, key=lambda c: -1 if c is None else c):
            what = "the tokens" if column is None else f"column {column}"
            found.append(
                f"{what} of input `{tensor.name}`: {'no feature' if column in expected else 'none exists'}"
            )
        twice = sorted(str(column) for column in columns & expected if written[tensor.name, column] > 1)
        found += [f"column {column} of input `{tensor.name}`: more than one feature" for column in twice]
    return found


def _places(feature: Feature) -> list[tuple[str, int | None]]:
    """The columns that a feature fills, None for whole rows of tokens."""
    last = feature.steps[-1] if feature.steps else None
    if isinstance(last, Tokenizer):
        return [(name, None) for name in (feature.tensor, last.mask, last.type_ids) if name is not None]
    first = feature.column or 0
    indicator = [feature.missing.column] if isinstance(feature.missing, MissingIndicator) else []
    return [(feature.tensor, column) for column in (*range(first, first + _width(feature)), *indicator)]


def _width(feature: Feature) -> int:
    last = feature.steps[-1] if feature.steps else None
    return last.size if isinstance(last, MultiHot) else last.length if isinstance(last, Sequence) else 1


def _check_lengths(spec: FeatureSpec, signature: Signature) -> None:
    """No tokenizer gives more tokens than the model takes."""
    bounds = {
        t.name: t.dims[1].max for t in signature.inputs if len(t.dims) == 2 and isinstance(t.dims[1], FreeDim)
    }
    for feature in spec.features:
        most = bounds.get(feature.tensor)
        for step in feature.steps:
            if isinstance(step, Tokenizer) and most is not None and step.max_length > most:
                raise ContractError(
                    f"field `{feature.field}`: `max_length` is {step.max_length}, and `{feature.tensor}` takes {most}",
                    hint="lower `max_length`, or raise `max` in signature.yaml if the model takes more",
                    file="features.yaml",
                )


def _target(tensor: dict[str, Any]) -> dict[str, Any]:
    if not tensor["shape"]:
        raise ContractError(
            f"input `{tensor['name']}` has no batch axis, and features make one row an instance",
            hint="remove features.yaml, so that clients send tensors",
            file="signature.yaml",
        )
    return {
        "name": tensor["name"],
        "datatype": tensor["datatype"],
        "inner": [size if isinstance(size, int) else None for size in tensor["shape"][1:]],
        "range": tensor["range"],
    }
