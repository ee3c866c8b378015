"""One control plane for all tests of this folder; as a package, so that it goes with the last of them."""
