"""Seatrial: takes a trained model to a measured verdict. The rooms are the public modules; see ARCHITECTURE.md."""

__version__ = "0.1.0"

__all__ = ["__version__"]
