"""Service of a world: server, clients in other processes and machines, and transports."""
