"""Faults of the machines below the library: disks, clocks, poolers, standbys, and everything at random."""
