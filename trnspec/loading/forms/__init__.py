"""Short forms of documents, read as the full ones: claims with several sources, prices as rows, names of a driver."""
