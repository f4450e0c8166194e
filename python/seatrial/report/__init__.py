"""Records become reports: one HTML file, Markdown and JSON, from the same record and with the same figures."""

from seatrial.report.rendering import FORMATS, Format, render

__all__ = ["FORMATS", "Format", "render"]
