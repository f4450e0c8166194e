"""Units: the text is kept, the number is normalised, anything else is refused with an example."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from seatrial.contract import Cores, Duration, Growth, Rate, Share, Size


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Duration, "100ms", 100.0),
        (Duration, "2s", 2000.0),
        (Duration, "1.5 s", 1500.0),
        (Duration, "30d", 30 * 86_400_000.0),
        (Duration, "250us", 0.25),
        (Size, "2GiB", 2 * 1024**3),
        (Size, "2GB", 2 * 1000**3),
        (Size, "512 KiB", 512 * 1024),
        (Rate, "2000/s", 2000.0),
        (Rate, "30/min", 0.5),
        (Share, "99.9%", 0.999),
        (Share, "0%", 0.0),
        (Growth, "5%/month", 0.6),
        (Cores, "0.5 core", 0.5),
        (Cores, "4 cores", 4.0),
    ],
)
def test_a_quantity_keeps_its_text_and_its_number(kind: type, text: str, value: float) -> None:
    quantity = kind.parse(text)
    assert str(quantity) == text
    assert quantity.value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Duration, "100"),
        (Duration, 100),
        (Duration, "-1s"),
        (Duration, "0ms"),
        (Duration, "1e3ms"),
        (Duration, "100 msec"),
        (Duration, "100ms "),
        (Duration, "１００ms"),
        (Size, "2G"),
        (Size, "2gib"),
        (Size, "99999999999999TiB"),
        (Rate, "2000"),
        (Rate, "2000/s/s"),
        (Share, "100.1%"),
        (Share, "0.5"),
        (Cores, "0 cores"),
        (Growth, "5%"),
        (Duration, None),
        (Duration, "9" * 1000 + "s"),
    ],
)
def test_what_is_no_quantity_is_refused_with_an_example(kind: type, text: object) -> None:
    class Holder(BaseModel):
        value: kind  # type: ignore[valid-type]

    with pytest.raises(ValidationError) as caught:
        Holder(value=text)
    assert kind.examples[0] in str(caught.value)
