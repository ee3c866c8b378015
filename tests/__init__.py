"""What the product promises, by what is needed to see it: nothing, a control plane, the whole of it."""
