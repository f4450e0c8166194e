"""Placeholder of the room records."""

__all__: list[str] = []
