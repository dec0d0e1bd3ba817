"""Uncertainty: probabilities of geometric facts under Gaussian poses."""
