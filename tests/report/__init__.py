"""Tests of the room report."""
