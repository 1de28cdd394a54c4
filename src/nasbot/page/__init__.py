"""The page of a study: as one file, or live from a small server that only reads (``server``, guarded by ``guard``)."""
