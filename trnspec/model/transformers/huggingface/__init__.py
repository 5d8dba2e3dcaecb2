"""Reading the config.json of models on the Hugging Face Hub."""
