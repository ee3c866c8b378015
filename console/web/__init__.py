"""A page that shows the cluster live: nodes, moves, refusals, plots. It reads and never writes."""
