"""Numbers with their unit in the text: `100ms`, `2GiB`, `2000/s`, `99.9%`, `0.5 core`, `5%/month`.

Each value keeps the text a person wrote and carries the normalised number beside it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

__all__ = ["Cores", "Duration", "Growth", "Rate", "Share", "Size"]

# No sign, no exponent, no leading dot: what people write on paper. Fifteen digits keep a float exact.
NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)"


@dataclass(frozen=True, order=False)
class Quantity:
    """A number with a unit. `text` is what was written, the subclass's property is the normalised number."""

    text: str
    value: float

    units: ClassVar[dict[str, float]] = {}
    what: ClassVar[str] = ""
    examples: ClassVar[tuple[str, ...]] = ()
    ceiling: ClassVar[float] = 1e18
    zero_allowed: ClassVar[bool] = False

    @classmethod
    def parse(cls, text: object) -> Self:
        """The quantity of a text.

        >>> Duration.parse("100ms").ms
        100.0
        """
        match = re.fullmatch(cls.pattern(), text) if isinstance(text, str) and len(text) <= 40 else None
        if match is None:
            raise cls.refusal(text)
        value = float(match[1]) * cls.units[match[2]]
        if value > cls.ceiling or (value == 0 and not cls.zero_allowed):
            raise cls.refusal(text)
        return cls(str(text), value)

    @classmethod
    def pattern(cls) -> str:
        """The regular expression of a legal text, without anchors."""
        units = "|".join(re.escape(u) for u in sorted(cls.units, key=len, reverse=True))
        return rf"{NUMBER} ?({units})"

    @classmethod
    def refusal(cls, text: object) -> PydanticCustomError:
        """What to say about a text that is no such quantity."""
        shown = f"{text!r:.60}"
        wanted = f"{cls.what}, such as {' or '.join(f'`{e}`' for e in cls.examples)}"
        return PydanticCustomError("quantity", "{shown} is not {wanted}", {"shown": shown, "wanted": wanted})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda v: v if isinstance(v, cls) else cls.parse(v),
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {
            "type": "string",
            "pattern": f"^{cls.pattern()}$",
            "examples": list(cls.examples),
            "description": cls.what,
        }

    def __str__(self) -> str:
        return self.text


class Duration(Quantity):
    """A length of time above zero."""

    units = {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7}  # noqa: RUF012
    what = "a duration with its unit"
    examples = ("100ms", "2s", "30d")

    @property
    def ms(self) -> float:
        """The length in milliseconds."""
        return self.value


class Size(Quantity):
    """A number of bytes above zero."""

    units = {  # noqa: RUF012
        "B": 1.0,
        **{f"{p}iB": 1024.0**i for i, p in enumerate("KMGT", 1)},
        **{f"{p}B": 1000.0**i for i, p in enumerate("KMGT", 1)},
        "kB": 1000.0,
    }
    what = "a size with its unit"
    examples = ("2GiB", "512MiB")
    ceiling = 2.0**53

    @property
    def bytes(self) -> int:
        """The size in whole bytes."""
        return round(self.value)


class Rate(Quantity):
    """Requests in a time, above zero."""

    units = {"/s": 1.0, "/min": 1 / 60, "/h": 1 / 3600, "/d": 1 / 86400}  # noqa: RUF012
    what = "a rate with its unit"
    examples = ("2000/s", "30/min")

    @property
    def per_second(self) -> float:
        """The rate per second."""
        return self.value


class Share(Quantity):
    """A part of a whole, from 0% to 100%."""

    units = {"%": 0.01}  # noqa: RUF012
    what = "a percentage from 0% to 100%"
    examples = ("99.9%", "0.1%")
    ceiling = 1.0
    zero_allowed = True

    @property
    def fraction(self) -> float:
        """The share as a number from 0 to 1."""
        return self.value


class Growth(Quantity):
    """How much the load grows in a time; kept as the fraction a year would add at a constant pace."""

    units = {"%/week": 0.01 * 52, "%/month": 0.01 * 12, "%/quarter": 0.01 * 4, "%/year": 0.01}  # noqa: RUF012
    what = "a growth with its time"
    examples = ("5%/month", "40%/year")
    zero_allowed = True

    @property
    def fraction_per_year(self) -> float:
        """The simple (not compounded) growth of a year as a fraction."""
        return self.value


class Cores(Quantity):
    """Processor cores above zero."""

    units = {"core": 1.0, "cores": 1.0}  # noqa: RUF012
    what = "a number of cores"
    examples = ("0.5 core", "4 cores")
    ceiling = 4096.0

    @property
    def cores(self) -> float:
        """The number of cores."""
        return self.value
