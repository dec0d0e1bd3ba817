"""The transport of the service over zenoh."""
