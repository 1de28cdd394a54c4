"""nasbot."""
