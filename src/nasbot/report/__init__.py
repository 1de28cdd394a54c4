"""Seeing networks: drawings as numbers, then as SVG or PNG."""
