"""The CA and the serving certificate of the webhook, kept right by reconciliation. The Secrets are the truth."""
