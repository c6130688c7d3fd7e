"""One file per architecture of the Hub, named like its `model_type`: LAYOUTS has a layout for each class."""
