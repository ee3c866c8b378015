"""Every annotation and every data key that certs writes or honours on its Secrets."""

from typing import Final

from policy import keys

ROTATE: Final = f"{keys.API_GROUP}/rotate"
"""A person's wish: `ca` on the Secret of the CA, `leaf` on the Secret of the leaf. Removed when it is granted."""
SEEN: Final = f"{keys.API_GROUP}/seen"
"""On the Secret of the CA: since when each certificate has been in place without interruption."""
CAUSE: Final = f"{keys.API_GROUP}/cause"
"""Why we wrote the Secret last, for whoever looks at it."""
CERT_MANAGER: Final = "cert-manager.io/certificate-name"
"""On the Secret of the leaf: cert-manager looks after it, so we do not."""

CURRENT_CERT: Final = "ca.crt"
CURRENT_KEY: Final = "ca.key"
STAGED_CERT: Final = "next.crt"
STAGED_KEY: Final = "next.key"
PREVIOUS_CERTS: Final = "previous.crt"

LEAF_CERT: Final = "tls.crt"
LEAF_KEY: Final = "tls.key"
LEAF_SIGNER: Final = "ca.crt"
LEAF_TYPE: Final = "kubernetes.io/tls"
CA_TYPE: Final = "Opaque"
