"""What all benchmarks found, as one page: a table against peers and targets, plots, the machine and the commands."""
