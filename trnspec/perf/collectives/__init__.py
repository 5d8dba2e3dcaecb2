"""Collectives: algorithms on a declared topology, their link loads, times and lower bounds."""
