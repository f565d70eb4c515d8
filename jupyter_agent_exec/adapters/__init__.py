"""The interfaces of agent frameworks, with a kernel of Jupyter and its history behind them.

One module per framework, imported by its name; each needs its framework installed. What they share:
`kernel_session` has the session in which the code runs, `result_pieces` tells what came of it.
"""
