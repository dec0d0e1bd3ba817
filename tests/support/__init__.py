"""What several tests share: plain models, oracles and generators of random values."""
