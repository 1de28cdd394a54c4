"""Drawing networks: layout as numbers, then SVG or PNG."""
