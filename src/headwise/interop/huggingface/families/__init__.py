"""One file per architecture of the Hub, named like its `model_type`, with its declaration in LAYOUT."""
