"""The kernels of a server that has them at a gateway: one WebSocket for each."""
