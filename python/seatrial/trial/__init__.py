"""Placeholder of the room trial."""

__all__: list[str] = []
