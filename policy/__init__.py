"""What spotshift wants: vocabulary, settings and placement rules.

Pure code: no Kubernetes API, no clock, no environment, no logging. It takes plain mappings and returns
values and reasons; the programs around it act on them.
"""
