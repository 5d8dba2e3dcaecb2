"""Charts: data that say what is drawn, and the only module that imports matplotlib."""
