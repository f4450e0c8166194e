"""03-text-embedding: a sentence as a point in 384 dimensions, of whatever length (all-MiniLM-L6-v2)."""
