"""Pictures and films of plans, simulations and failures."""
