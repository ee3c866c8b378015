"""Parts of the product on a real control plane."""
