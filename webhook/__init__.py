"""Admission: a review comes in, a patch goes out.

The core is pure: `handle.handle(body, view, now)` decides from the bytes of one request and from an immutable
`view.View` of the cluster, calls nobody, and never says no. Around it stand `live`, which
keeps the view from watches, `server`, which speaks HTTP, and `serve`, which puts them together.
"""
