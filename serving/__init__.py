"""What our HTTP servers share: an ASGI shell, TLS that follows its files, limits for peers, and gunicorn around it.

Knows neither reviews nor nodes. Who serves brings the handlers; who calls is an API server or a scheduler, which keep
connections open and have a short patience.
"""
