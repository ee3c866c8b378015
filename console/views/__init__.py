"""What people see: a look at the cluster as plain values for programs, and as tables.   Pure."""
