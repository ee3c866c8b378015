"""Names of the objects of an installation, for those who make them and those who look for them."""

from typing import Final

NAMESPACE: Final = "spotshift-system"
SETTINGS: Final = "spotshift-settings"
"""ConfigMap with the settings; the emergency stop is an annotation on it."""
SETTINGS_KEY: Final = "settings.yaml"
"""The document in that ConfigMap."""
DESCHEDULER: Final = "spotshift-descheduler"
"""Deployment, ServiceAccount, roles and Lease of the descheduler."""
WEBHOOK: Final = "spotshift-webhook"
"""Deployment, ServiceAccount, roles, Service and MutatingWebhookConfiguration of the webhook."""
CERTS: Final = "spotshift-certs"
"""Deployment, ServiceAccount and roles of what keeps the certificates."""
