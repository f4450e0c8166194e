"""Tests of the room bench: figures, bodies, the generator's process, the command."""
