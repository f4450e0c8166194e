"""Tests of the room check."""
