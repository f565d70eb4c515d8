"""Azure Container Apps' dynamic sessions: their protocol, for clients that speak it."""
