"""Optional: /filter and /prioritize for kube-scheduler, by the same policy as the rest.

The core is pure: `answer` goes from the bytes of one question and an immutable `view.View` of the cluster to the
bytes of the answer, calls nobody, and never holds a pod back because something of ours failed. Around it stand
`live`, which keeps the view from watches, `server`, which counts, and `serve`, which puts them together.
"""
