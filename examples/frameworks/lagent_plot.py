"""A plot with lagent's code interpreter: the image is a file in its folder."""

from jupyter_agent_exec.adapters.lagent import IPythonInterpreter

PLOT = """
import matplotlib.pyplot as plt
prices = [101, 99, 104, 108, 103, 110]
plt.plot(prices)
plt.title("Closing price")
plt.show()
"""

interpreter = IPythonInterpreter(timeout=60, work_dir="plots")
for item in interpreter.run(PLOT).result or []:
    print(item["type"], item["content"])
