"""Fibonacci numbers with lagent's code interpreter, as a model asks for them."""

import json

from lagent.actions import ActionExecutor

from jupyter_agent_exec.adapters.lagent import IPythonInterpreter

DEFINE = """
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        yield a
        a, b = b, a + b
"""
SHOW = """
The function is there, so let us look:
```python
print(*fibonacci(10))
sum(fibonacci(10))
```
"""

interpreter = IPythonInterpreter()
executor = ActionExecutor([interpreter])
for command in (DEFINE, SHOW, "fibonacci(none)"):
    answer = executor("IPythonInterpreter", json.dumps({"command": command}))
    print(answer.state, answer.format_result() or (answer.errmsg or "").splitlines()[-1:])
