"""Reader of MJCF, the models of MuJoCo."""
