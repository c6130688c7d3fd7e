"""Models in the layout of the Hugging Face Hub: config.json, safetensors, tokenizer files."""
