"""USD: scenes of Isaac Sim and other programs, read and written (extra ``formats``)."""
