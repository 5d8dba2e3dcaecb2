"""Plans: the system, its number, the time and the cost of a run or of a serving fleet."""
