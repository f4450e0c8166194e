"""Placeholder of the room bench."""

__all__: list[str] = []
