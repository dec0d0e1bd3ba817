"""glTF: scenes of modellers and browsers, read and written."""
