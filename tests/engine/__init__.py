"""Tests of the engine room and, through it, of the native server."""
