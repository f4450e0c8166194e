"""Raw fields to tensors from Python, against references written without the native code."""
