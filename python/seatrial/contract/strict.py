"""The parent of every contract model: frozen, and unknown keys are errors unless they start with `x-`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StringConstraints,
    model_validator,
)

__all__ = ["API_VERSION", "ApiVersion", "Name", "Strict", "Text"]

API_VERSION = "seatrial/v1"
ApiVersion = Literal["seatrial/v1"]

# What a package or a dimension may be called: safe as a file name, as part of a URL and as a metric label.
Name = Annotated[str, StringConstraints(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
Text = Annotated[str, StringConstraints(strict=True, max_length=20_000)]


def _allow_extensions(schema: dict[str, Any]) -> None:
    schema["patternProperties"] = {"^x-": {}}


class Strict(BaseModel):
    """A contract model. `extensions` holds the `x-` keys of the file, carried but not judged."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_allow_extensions)
    _extensions: dict[str, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="wrap")
    @classmethod
    def _set_extensions_aside(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict):
            return handler(data)
        extensions = {k: v for k, v in data.items() if isinstance(k, str) and k.startswith("x-")}
        model = handler({k: v for k, v in data.items() if k not in extensions})
        model._extensions = extensions
        return model

    @property
    def extensions(self) -> dict[str, Any]:
        """The keys that start with `x-`, as they stood in the file."""
        return dict(self._extensions)


class Document(Strict):
    """A file of the package: says which version of the contract it is written in."""

    apiVersion: ApiVersion = Field(description="Version of the contract, always `seatrial/v1`.")  # noqa: N815
