"""From a PyTorch model to its layer graph."""
