"""Is the installation well? One module for each thing that can be wrong; each looks, and changes nothing."""
