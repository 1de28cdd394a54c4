"""Vocabularies to read, run and change; docs/how-to/transformers-and-mobilenets.md goes through them."""
