"""Reference pages from JSON Schema: one table a file of the package or a part of a record. Text in, Markdown out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["schema_tables"]

Schema = Mapping[str, Any]


def schema_tables(title: str, schema: Schema) -> Iterator[str]:
    """A section for the schema itself and one for each part that it refers to, in order of first mention."""
    yield f"## {title}\n\n{prose(schema)}{table(schema)}"
    for name in mentioned(schema, schema.get("$defs", {})):
        part = schema["$defs"][name]
        if "properties" in part:
            yield f"### {title}: {name}\n\n{prose(part)}{table(part)}"
        else:
            yield f"### {title}: {name}\n\n{prose(part)}{kind(part)}\n"


def mentioned(schema: Schema, defs: Mapping[str, Schema]) -> list[str]:
    """Names of parts, breadth first from the schema."""
    found: list[str] = []
    open_schemas: list[Any] = [schema.get("properties", {})]
    while open_schemas:
        for name in references(open_schemas.pop(0)):
            if name not in found and name in defs:
                found.append(name)
                open_schemas.append(defs[name])
    return found


def references(value: Any) -> Iterator[str]:
    """Names behind `$ref` anywhere inside."""
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield str(value["$ref"]).rsplit("/", 1)[-1]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def prose(schema: Schema) -> str:
    """The description as a paragraph."""
    return f"{one_line(schema.get('description', ''))}\n\n" if schema.get("description") else ""


def table(schema: Schema) -> str:
    """Key, type, whether it must be there, meaning."""
    required = set(schema.get("required", ()))
    rows = [
        f"| `{key}` | {kind(field)} | {presence(key, field, required)} | {one_line(field.get('description', ''))} |"
        for key, field in schema.get("properties", {}).items()
    ]
    return "| key | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def presence(key: str, field: Schema, required: set[str]) -> str:
    """The default, or that there is none."""
    if key in required:
        return "required"
    default = field.get("default")
    return "none" if default is None else f"`{default}`"


def kind(field: Schema) -> str:
    """The type in words."""
    if "$ref" in field:
        return field["$ref"].rsplit("/", 1)[-1]
    for union in ("anyOf", "oneOf"):
        if union in field:
            return " or ".join(dict.fromkeys(kind(f) for f in field[union]))
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{v}`" for v in field["enum"])
    if "allOf" in field:
        return kind(field["allOf"][0])
    base = field.get("type", "any")
    if base == "array":
        return f"list of {kind(field.get('items', {}))}"
    if base == "object" and isinstance(field.get("additionalProperties"), Mapping):
        return f"map of {kind(field['additionalProperties'])}"
    examples = field.get("examples")
    shown = f", such as {' or '.join(f'`{e}`' for e in examples)}" if examples else ""
    return f"{base}{shown}"


def one_line(text: str) -> str:
    """Fit for a table cell."""
    return " ".join(str(text).split()).replace("|", "\\|")
