"""Reader and writer of USD stages with the physics schema (extra ``formats``)."""
