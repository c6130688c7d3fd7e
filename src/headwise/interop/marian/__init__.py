"""Models in Marian's own files, as OPUS-MT publishes them."""
