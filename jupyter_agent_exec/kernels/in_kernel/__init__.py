"""Code that runs inside a kernel, and what sends it there; the rest of the package runs outside."""
