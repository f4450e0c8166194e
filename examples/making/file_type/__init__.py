"""02-file-type: what kind of content a file holds, told from its first and last bytes (Magika)."""
