"""Sources that are run as one notebook, through nbclient and through our own fold."""

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"

SOURCES: dict[str, str] = {
    "nothing": "x = 1",
    "comment only": "# nothing at all",
    "print": "print('hello')",
    "no line end": "print('no end', end='')",
    "two prints": "print('a'); print('b')",
    "flushed prints": "for i in range(50): print(i, flush=True)",
    "interleaved flushed": (
        "import sys\n"
        "for i in range(5):\n"
        "    print('out', i, flush=True)\n"
        "    print('err', i, file=sys.stderr, flush=True)"
    ),
    "stderr only": "import sys; print('problem', file=sys.stderr)",
    "stderr then stdout": "sys.stderr.write('e'); sys.stderr.flush(); print('o')",
    "carriage returns": "for i in range(5): print(f'\\r{i * 25} %', end='', flush=True)",
    "carriage return and line end": "print('a\\r\\nb\\r\\n')",
    "backspaces": "print('abc\\b\\bX')",
    "erase in line": "print('long line\\r\\x1b[Kshort')",
    "colours": "print('\\x1b[31mred\\x1b[0m and \\x1b]8;;http://x\\x1b\\\\link\\x1b]8;;\\x1b\\\\')",
    "subprocess": "import subprocess; subprocess.run(['echo', 'from a child'], check=True);",
    "file descriptor": "import os; n = os.write(1, b'straight to 1\\n')",
    "shell magic": "!printf 'a\\nb\\n'",
    "captured magic": "%%capture out\nprint('not seen'); 42",
    "captured shown": "out.show()",
    "captured text": "out.stdout",
    "line magic": "%env JUPYTER_AGENT_EXEC_TEST=1",
    "cell magic": "%%bash\necho out\necho err >&2",
    "unknown magic": "%no_such_magic",
    "result": "1 + 1",
    "string result": "'text\\nwith lines'",
    "suppressed result": "3 + 4;",
    "none result": "None",
    "two expressions": "5\n6",
    "print and result": "print('before'); 7",
    "display between prints": (
        "from IPython.display import display\n"
        "print('one'); display('shown'); print('two'); display({'a': 1}); print('three')"
    ),
    "display in a loop": "for i in range(5):\n    display(i)",
    "nested displays": (
        "class Outer:\n"
        "    def _repr_html_(self):\n"
        "        display('inner')\n"
        "        return '<b>outer</b>'\n"
        "Outer()"
    ),
    "html": "from IPython.display import HTML; HTML('<table><tr><td>1<td>2</table>')",
    "markdown": "from IPython.display import Markdown; Markdown('# Title\\n\\ntext')",
    "latex": "from IPython.display import Latex, Math; display(Latex('$x^2$')); Math('y')",
    "json": "from IPython.display import JSON; JSON({'a': [1, 2, {'b': None}], 'c': 'é'})",
    "javascript": "from IPython.display import Javascript; Javascript('1 + 1')",
    "svg": "from IPython.display import SVG; SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')",
    "png": f"import base64\nfrom IPython.display import Image\nImage(base64.b64decode('{PNG}'))",
    "png with metadata": f"Image(base64.b64decode('{PNG}'), width=10, metadata={{'k': [1]}})",
    "gif": f"Image(base64.b64decode('{GIF}'), format='gif')",
    "jpeg": "Image(b'\\xff\\xd8\\xff\\xe0 not much of one', format='jpeg')",
    "image by address": "Image(url='http://localhost/none.png')",
    "matplotlib": (
        "%matplotlib inline\n"
        "import matplotlib.pyplot as plt\n"
        "fig, ax = plt.subplots(figsize=(2, 1))\n"
        "ax.plot([1, 2, 3]);"
    ),
    "two figures": "plt.figure(figsize=(1, 1)); plt.plot([1]); plt.show(); plt.plot([2]); plt.show()",
    "dataframe": "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2], 'b': ['x', None]})\ndf",
    "series": "df['a']",
    "styler": "df.style.set_uuid('fixed').highlight_max(subset=['a'])",
    "empty dataframe": "df.iloc[:0]",
    "own mimebundle": (
        "display({'text/plain': 'p', 'application/vnd.own+json': {'x': [1.5]},\n"
        "         'text/html': '<i>h</i>'}, metadata={'text/html': {'isolated': True}}, raw=True)"
    ),
    "lists in a mimebundle": (
        "display({'text/plain': ['two\\n', 'lines'], 'application/json': ['a', 'b']}, raw=True)"
    ),
    "not a number in json": (
        "display({'application/json': {'x': float('nan'), 'y': [float('inf')]},\n"
        "         'text/plain': 'nan'}, raw=True)"
    ),
    "empty mimebundle": "display({}, raw=True)",
    "clear": "print('gone'); display('gone too')\nfrom IPython.display import clear_output\nclear_output(); print('stays')",
    "clear at the end": "print('gone'); clear_output()",
    "clear when something comes": "print('gone'); clear_output(wait=True); print('stays')",
    "clear when nothing comes": "print('stays'); clear_output(wait=True)",
    "clear twice": "print('a'); clear_output(wait=True); clear_output(); print('b'); print('c')",
    "clear in a loop": "for i in range(20):\n    clear_output(wait=True)\n    print('step', i, flush=True)",
    "clear before an error": "print('gone'); clear_output(wait=True); 1 / 0",
    "display handle": "handle = display('first', display_id='d1')",
    "update from later": "handle.update('second'); print('updated')",
    "update in place": "h = display('x', display_id='d2'); h.update('y'); h.update('z')",
    "same id in two cells": "display('third', display_id='d1'); display('again', display_id='d1')",
    "update of all": "from IPython.display import update_display\nupdate_display('all', display_id='d1')",
    "update of an unknown id": "update_display('nobody sees this', display_id='never shown')",
    "update after clear": "h = display('a', display_id='d3'); clear_output(); h.update('b'); print('c')",
    "update with pending clear": (
        "h = display('a', display_id='d4'); clear_output(wait=True); h.update('b')\n"
        "display('c', display_id='d4')"
    ),
    "shown again after clear": "h.display('d'); h.update('e')",
    "update changes types": "handle.update(HTML('<b>html</b>')); handle",
    "update with metadata": "update_display('m', display_id='d2', metadata={'text/plain': {'k': 1}})",
    "error": "1 / 0",
    "error after output": "print('so far'); display('and this'); undefined_name",
    "chained error": "try:\n    {}['k']\nexcept KeyError as e:\n    raise ValueError('while') from e",
    "error while handling": "try:\n    [][0]\nexcept IndexError:\n    int('x')",
    "syntax error": "for in range(3)",
    "indentation error": "def f():\npass",
    "error without message": "class Own(Exception): pass\nraise Own",
    "error with odd text": "raise ValueError('\\x1b[31mred\\n\\nlines é 😀')",
    "exception group": (
        "def group():\n    raise ValueError('many', [KeyError('a'), OSError('b')])\ngroup()"
        if __import__("sys").version_info < (3, 11)
        else "raise ExceptionGroup('many', [KeyError('a'), OSError('b')])"
    ),
    "sys.exit": "sys.exit(3)",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "shown traceback": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    get_ipython().showtraceback()\nprint('on')",
    "plain traceback": "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()",
    "assertion": "assert 1 == 2, 'one is not two'",
    "odd text": "print('NUL \\0 emoji 😀 bidi \\u202eabc\\u202c combining e\\u0301 \\x7f \\x85 \\u2028')",
    "line separators": "print('a\\x0bb\\x0cc\\x1cd\\x85e\\u2029f')",
    "large output": "print('x' * 1_000_000)",
    "many lines": "for i in range(20_000): print('line', i)",
    "warning": "import warnings; warnings.simplefilter('always'); warnings.warn('take care')",
    "logging": "import logging; logging.warning('logged %s', 'this')",
    "async": "import asyncio\nawait asyncio.sleep(0)\nprint('awaited')\nawait asyncio.gather(asyncio.sleep(0, 1))",
    "thread": "import threading\nt = threading.Thread(target=print, args=('thread',)); t.start(); t.join()",
    "comm": (
        "from comm import create_comm\n"
        "c = create_comm(target_name='own', data={'a': 1}); c.send({'b': 2}); c.close(); print('sent')"
    ),
    "pager": "print.__name__?",
    "history": "_, __",
    "pretty object": "class P:\n    def _repr_pretty_(self, p, cycle): p.text('pretty')\nP()",
    "broken repr": "class B:\n    def __repr__(self): raise RuntimeError('no repr')\nB()",
    "print in repr": "class R:\n    def __repr__(self):\n        print('in repr')\n        return 'R'\nR()",
    "execution count": "get_ipython().execution_count",
}
