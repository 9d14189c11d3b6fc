"""Scripts that build the training set from packaged speech. Used by training, never live."""
