"""The live page: one small server that only reads, and the promises about who may ask it what (``guard``)."""

from nasbot.web.server import Address, LivePage, make_app, serve

__all__ = ["Address", "LivePage", "make_app", "serve"]
