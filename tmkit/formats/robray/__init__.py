"""Reader and writer of robray, the scene language of the original TMKit."""
