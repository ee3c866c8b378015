"""How good are moves: what a cluster with a few overfull nodes looks like afterwards, and what that cost."""
