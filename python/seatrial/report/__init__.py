"""Placeholder of the room report."""

__all__: list[str] = []
