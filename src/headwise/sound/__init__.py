"""Sound files to arrays: reading, log-mel features, augmentation, silence. Needs no torch."""
