"""Tests of the example packages: set-up, check, answers of the server, and the figures on their cards."""
