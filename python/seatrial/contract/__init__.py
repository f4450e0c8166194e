"""Placeholder of the room contract."""

__all__: list[str] = []
