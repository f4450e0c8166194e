"""Placeholder of the room engine."""

__all__: list[str] = []
