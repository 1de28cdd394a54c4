"""People's data: tables, images, splits and preprocessing, as numbers that networks can learn. No PyTorch here."""
