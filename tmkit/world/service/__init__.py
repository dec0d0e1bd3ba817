"""The service of a world: a server, clients in other processes and machines, and what carries their messages."""
