"""Short forms of documents, read as the full ones: claims with several sources, and prices as rows."""
