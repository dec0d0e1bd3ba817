"""Reader and writer of glTF, scenes of modelling programs and browsers."""
