"""Hand-written fast paths. Each computes what plain PyTorch computes, and a test compares the two."""
