"""What an agent's code can change in a kernel: how it is changed, and how one sees that it is not.

Each has a name, the libraries that it needs, what is there before, what changes it, and an
expression that is true as long as it is unchanged.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One kind of change."""

    name: str
    needs: str
    before: str
    change: str
    is_unchanged: str


MUTATIONS = (
    Mutation("a name is bound again", "", "x = 1", "x = 2", "x == 1"),
    Mutation("a name is removed", "", "gone = 1", "del gone", "gone == 1"),
    Mutation("new names, an import", "", "", "import wave; new = 3",
             "'new' not in globals() and 'wave' not in sys.modules"),
    Mutation("a column is added in place", "pandas",
             "df = pd.DataFrame({'a': range(5)}); view = df",
             "df['c'] = 1", "list(df) == ['a'] and view is df"),
    Mutation("a table is sorted and cut in place", "pandas",
             "df2 = pd.DataFrame({'a': range(5), 'b': range(5)})",
             "df2.drop(columns='a', inplace=True)\n"
             "df2.sort_values('b', ascending=False, inplace=True)",
             "list(df2) == ['a', 'b'] and list(df2.b) == list(range(5))"),
    Mutation("a list grows under two names", "", "l = [1]; alias = l", "l.append(2)",
             "l == [1] and alias is l"),
    Mutation("a nested list and a dict", "", "d = {'k': {'n': [1]}}",
             "d['k']['n'].append(2)\nd['z'] = 1",
             "d == {'k': {'n': [1]}}"),
    Mutation("an array and its view", "numpy",
             "arr = np.zeros(10**5); part = arr[:10]", "arr[:] = 7",
             "arr.sum() == 0 and part.sum() == 0 and part.base is arr"),
    Mutation("a model is fitted in place", "sklearn",
             "from sklearn.linear_model import LinearRegression\nest = LinearRegression()",
             "est.fit([[1], [2]], [1, 2])", "not hasattr(est, 'coef_')"),
    Mutation("the working folder", "", "", "os.chdir('/')", "os.getcwd() != '/'"),
    Mutation("the environment and the path", "", "",
             "os.environ['Z9'] = '1'; sys.path.append('/zz')",
             "'Z9' not in os.environ and '/zz' not in sys.path"),
    Mutation("settings of matplotlib", "matplotlib", "", "plt.rcParams['figure.dpi'] = 33",
             "plt.rcParams['figure.dpi'] != 33"),
    Mutation("options of pandas", "pandas", "", "pd.set_option('display.max_rows', 7)",
             "pd.get_option('display.max_rows') != 7"),
    Mutation("random numbers of Python", "", "random.seed(1)", "random.seed(9)",
             "random.random() == 0.13436424411240122"),
    Mutation("random numbers of NumPy", "numpy", "np.random.seed(1)", "np.random.seed(9)",
             "np.random.rand() == 0.417022004702574"),
    Mutation("a generator of random numbers", "numpy", "rng = np.random.default_rng(1)",
             "rng.random(5)", "rng.random() == 0.5118216247002567"),
    Mutation("a method of a library's class", "pandas", "", "pd.DataFrame.head = lambda self: 1",
             "len(pd.DataFrame({'a': range(5)}).head(2)) == 2"),
    Mutation("a function of a library", "numpy", "", "np.mean = lambda a: 5", "np.mean([1]) == 1"),
    Mutation("a function and a class of the user's", "",
             "def f(): return 1\nclass M: n = 0", "def f(): return 2\nM.n += 1",
             "f() == 1 and M.n == 0"),
    Mutation("an iterator", "", "gen = iter(range(10)); next(gen)", "next(gen)", "next(gen) == 1"),
    Mutation("an object with a lock", "", "lock = threading.Lock()", "lock.acquire()",
             "not lock.locked()"),
    Mutation("a database in memory, SQLite", "",
             "db = sqlite3.connect(':memory:'); db.execute('create table t(a)')",
             "db.execute('insert into t values(1)')",
             "db.execute('select count(*) from t').fetchone()[0] == 0"),
    Mutation("a database in memory, DuckDB", "duckdb",
             "con = duckdb.connect(); con.execute('create table t as select 1 a')",
             "con.execute('insert into t values(2)')",
             "con.execute('select count(*) from t').fetchone()[0] == 1"),
    Mutation("an existing plot", "matplotlib", "fig, ax = plt.subplots(); plt.close()",
             "ax.plot([1, 2])", "len(ax.lines) == 0 and ax.figure is fig"),
    Mutation("what a closure holds", "",
             "def closure():\n    s = []\n    return s.append, (lambda: list(s))\n"
             "push, peek = closure()", "push(1)", "peek() == []"),
    Mutation("a cache of results", "",
             "@functools.lru_cache\ndef cached(i): return object()\nc0 = cached(1)",
             "cached.cache_clear()", "cached(1) is c0"),
    Mutation("settings of warnings and logging", "", "",
             "warnings.simplefilter('error'); logging.getLogger().setLevel(5)",
             "logging.getLogger().level != 5 and warnings.filters[0][0] != 'error'"),
    Mutation("a task and a thread that it started", "", "",
             "async def z():\n    while True: await asyncio.sleep(.1)\n"
             "T = asyncio.create_task(z())\n"
             "threading.Thread(target=threading.Event().wait, daemon=True, name='agents').start()",
             "not any(t.name == 'agents' for t in threading.enumerate()) and not any("
             "getattr(t.get_coro(), '__name__', '') == 'z' for t in asyncio.all_tasks())"),
)  # fmt: skip
"""Kinds that come back."""

LASTING = (
    Mutation("how far an open file is written", "", "fh = open('log.txt', 'w+'); fh.write('a'); "
             "fh.flush()", "fh.write('bb'); fh.flush()", "fh.tell() == 1"),
    Mutation("a file on disk", "", "open('data.txt', 'w').write('old')",
             "open('data.txt', 'w').write('new')", "open('data.txt').read() == 'old'"),
)  # fmt: skip
"""Kinds that do not: docs/how-to/undo.md says so."""

SETUP = """
import asyncio, functools, importlib.util, json, logging, os, random, sqlite3, sys, threading
import warnings
for _name, _as in {imports}.items():
    if importlib.util.find_spec(_name): globals()[_as] = importlib.import_module(_name)
"""
IMPORTS = {
    "pandas": "pd",
    "numpy": "np",
    "matplotlib.pyplot": "plt",
    "duckdb": "duckdb",
}


def source(mutations: tuple[Mutation, ...], part: str) -> str:
    """Return code that does one part of each mutation whose libraries are there."""
    lines = [SETUP.format(imports=IMPORTS)] if part == "before" else ["found = {}"]
    for each in mutations:
        code = getattr(each, part)
        if part == "is_unchanged":
            code = f"found[{each.name!r}] = bool({code})"
        guard = f"importlib.util.find_spec({each.needs!r})" if each.needs else "True"
        body = "\n".join(f"    {line}" for line in (code or "pass").splitlines())
        lines.append(f"if {guard}:\n{body}")
    return "\n".join(lines)
