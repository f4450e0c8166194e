"""Placeholder of the room check."""

__all__: list[str] = []
