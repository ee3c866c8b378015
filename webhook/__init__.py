"""Admission: a review comes in, a patch goes out.

The core is pure: `handle.handle(body, view, now)` decides from the bytes of one request and from an immutable
`view.View` of the cluster, calls nobody, and never says no. The HTTP server and the watches stand around it.
"""
