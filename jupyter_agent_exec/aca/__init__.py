"""The protocol of Azure Container Apps' dynamic sessions, for clients that use it."""
