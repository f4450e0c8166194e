"""What others' servers and clients expect of ours: answers recorded from Triton, clients unmodified, OpenAPI."""
