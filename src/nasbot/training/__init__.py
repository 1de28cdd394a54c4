"""From an architecture to a trained PyTorch model, and from data to an objective. PyTorch lives here only."""
