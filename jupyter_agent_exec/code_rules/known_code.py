"""What the rules know: modules, functions and methods, and the kind of what they do.

A name that is in no table is unknown, and code that uses it needs approval.
"""

# ruff: noqa: SIM905 -- a table of names is easier to read as words

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping
from typing import Final

from ..types import CodeKind

Harm = tuple[CodeKind, str]
"""The kind of what code does, and the end of the sentence 'Line 3 …'."""

PURE: Final[Harm] = ("read", "")
"""What needs no approval under any policy: it computes, and changes nothing."""


def _names(prefix: str, words: str) -> list[str]:
    return [f"{prefix}.{word}" for word in words.split()]


READ: Final[Harm] = ("read", "reads a file")
PLOT: Final[Harm] = ("plot", "draws")
DELETE: Final[Harm] = ("files", "deletes a file")
WRITE: Final[Harm] = ("files", "writes a file")
MOVE: Final[Harm] = ("files", "moves or changes files")
NETWORK: Final[Harm] = ("network", "uses the network")
SHELL: Final[Harm] = ("shell", "runs a program")
COMMAND: Final[Harm] = ("shell", "uses a command or magic of IPython")
INSTALL: Final[Harm] = ("install", "installs packages")
DYNAMIC: Final[Harm] = ("dynamic", "runs code that the rules cannot read")
INTERNALS: Final[Harm] = ("dynamic", "reaches into Python's internals")
PICKLE: Final[Harm] = ("dynamic", "reads a pickle, which can run any code")
ENVIRONMENT: Final[Harm] = ("dynamic", "uses environment variables, which may hold secrets")
ENDS: Final[Harm] = ("variables", "ends the kernel")

HARMFUL_MODULES: Final[Mapping[str, Harm]] = {
    **dict.fromkeys(("subprocess", "pty", "pexpect", "sh", "plumbum", "commands"), SHELL),
    **dict.fromkeys(
        (
            "requests urllib urllib3 httpx http aiohttp socket socketserver ssl ftplib smtplib "
            "poplib imaplib telnetlib xmlrpc websocket websockets paramiko boto3 botocore s3fs "
            "gcsfs fsspec google azure openai anthropic huggingface_hub datasets kaggle yfinance "
            "wget pycurl webbrowser asyncio zmq tornado flask fastapi selenium playwright psycopg "
            "psycopg2 pymysql sqlalchemy pymongo redis"
        ).split(),
        NETWORK,
    ),
    **dict.fromkeys(
        ("shutil tempfile zipfile tarfile sqlite3 dbm h5py tables zarr").split(),
        MOVE,
    ),
    **dict.fromkeys(("pip", "conda", "ensurepip", "setuptools", "venv", "micropip"), INSTALL),
    **dict.fromkeys(("pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"), PICKLE),
    **dict.fromkeys(
        (
            "importlib imp runpy code codeop builtins types inspect gc ctypes cffi ast "
            "dis threading multiprocessing concurrent signal atexit weakref site pkgutil "
            "zipimport timeit cProfile profile pdb trace faulthandler resource fcntl mmap"
        ).split(),
        INTERNALS,
    ),
}
"""Modules that need approval for whatever is used of them."""

HARMFUL: Final[Mapping[str, Harm]] = {
    **dict.fromkeys(_names("builtins", "eval exec compile __import__ breakpoint"), DYNAMIC),
    **dict.fromkeys(
        _names("builtins", "globals locals vars setattr delattr memoryview __build_class__"),
        INTERNALS,
    ),
    "builtins.input": ("unknown", "waits for input"),
    **dict.fromkeys(("builtins.exit", "builtins.quit", "sys.exit", "os._exit", "os.abort"), ENDS),
    "builtins.get_ipython": ("shell", "uses IPython's shell"),
    "IPython.get_ipython": ("shell", "uses IPython's shell"),
    **dict.fromkeys(_names("os", "remove unlink rmdir removedirs"), DELETE),
    **dict.fromkeys(
        _names(
            "os",
            "rename renames replace mkdir makedirs chmod chown link symlink truncate utime open "
            "fdopen write mkfifo mknod chdir fchdir chroot",
        ),
        MOVE,
    ),
    **dict.fromkeys(
        _names(
            "os",
            "system popen execv execve execvp execvpe execl execle execlp execlpe spawnl spawnv "
            "spawnve spawnlp spawnvp posix_spawn fork forkpty kill killpg startfile",
        ),
        SHELL,
    ),
    **dict.fromkeys(_names("os", "environ environb getenv putenv unsetenv"), ENVIRONMENT),
    **dict.fromkeys(
        _names("sys", "modules path meta_path path_hooks settrace setprofile _getframe"), INTERNALS
    ),
    **dict.fromkeys(_names("sys", "stdin __stdout__ excepthook"), INTERNALS),
    **dict.fromkeys(_names("pandas", "read_pickle read_hdf HDFStore"), PICKLE),
    **dict.fromkeys(_names("pandas", "read_sql read_sql_query read_sql_table read_gbq"), NETWORK),
    **dict.fromkeys(_names("pandas", "eval"), DYNAMIC),
    "pandas.ExcelWriter": WRITE,
    "pandas.read_clipboard": ("unknown", "reads the clipboard"),
    **dict.fromkeys(_names("numpy", "save savez savez_compressed savetxt memmap fromregex"), WRITE),
    **dict.fromkeys(_names("matplotlib.pyplot", "savefig imsave"), WRITE),
    **dict.fromkeys(_names("json", "dump"), WRITE),
    **dict.fromkeys(("seaborn.load_dataset", "seaborn.get_dataset_names"), NETWORK),
    **dict.fromkeys(_names("joblib", "dump"), WRITE),
    **dict.fromkeys(("joblib.load", "torch.load"), PICKLE),
    "torch.save": WRITE,
    **dict.fromkeys(_names("operator", "methodcaller attrgetter"), DYNAMIC),
    "logging.FileHandler": WRITE,
    "logging.basicConfig": ("unknown", "changes the logging of the kernel"),
    "csv.writer": WRITE,
    "csv.DictWriter": WRITE,
}
"""Functions, by their full names, that need approval."""

_PURE_TEXT: Final[Mapping[str, str]] = {
    "builtins": "abs all any ascii bin bool bytearray bytes callable chr complex dict dir divmod "
    "enumerate filter float format frozenset hasattr hash hex id int isinstance issubclass iter "
    "len list map max min next object oct ord pow print property range repr reversed round set "
    "slice sorted staticmethod classmethod str sum super tuple zip display help NotImplemented "
    "Ellipsis ArithmeticError AssertionError AttributeError Exception BaseException ImportError "
    "IndexError KeyError LookupError NameError NotImplementedError OSError FileNotFoundError "
    "RuntimeError StopIteration TypeError UnicodeDecodeError ValueError ZeroDivisionError "
    "KeyboardInterrupt PermissionError OverflowError MemoryError ModuleNotFoundError Warning "
    "UserWarning DeprecationWarning FutureWarning RuntimeWarning TimeoutError __name__ __doc__ "
    "__file__",
    "builtins.str": "maketrans",
    "builtins.dict": "fromkeys",
    "builtins.int": "from_bytes",
    "builtins.bytes": "fromhex",
    "builtins.float": "fromhex",
    "pandas": "DataFrame Series Index MultiIndex RangeIndex DatetimeIndex Timestamp Timedelta "
    "TimedeltaIndex Period PeriodIndex Interval IntervalIndex Categorical CategoricalDtype "
    "CategoricalIndex NA NaT NamedAgg Grouper IndexSlice DateOffset concat merge merge_asof "
    "merge_ordered crosstab cut qcut get_dummies from_dummies melt pivot pivot_table to_datetime "
    "to_numeric to_timedelta date_range bdate_range period_range timedelta_range interval_range "
    "isna isnull notna notnull unique value_counts factorize wide_to_long json_normalize array "
    "set_option get_option reset_option describe_option option_context show_versions __version__ "
    "options Int64Dtype StringDtype BooleanDtype Float64Dtype infer_freq lreshape",
    "pandas.MultiIndex": "from_tuples from_product from_arrays from_frame",
    "pandas.DataFrame": "from_dict from_records",
    "pandas.Timestamp": "now today utcnow fromtimestamp",
    "pandas.Categorical": "from_codes",
    "pandas.IntervalIndex": "from_breaks from_tuples",
    "pandas.plotting": "",
    "pandas.options": "display mode plotting",
    "pandas.options.display": "max_rows max_columns width precision float_format max_colwidth",
    "pandas.options.mode": "chained_assignment copy_on_write",
    "pandas.api.types": "is_numeric_dtype is_string_dtype is_datetime64_any_dtype is_bool_dtype "
    "is_integer_dtype is_float_dtype is_object_dtype is_categorical_dtype CategoricalDtype",
    "pandas.tseries.offsets": "Day BDay MonthEnd MonthBegin Week QuarterEnd YearEnd DateOffset",
    "numpy": "abs absolute add all allclose amax amin angle any append apply_along_axis arange "
    "arccos arccosh arcsin arcsinh arctan arctan2 argmax argmin argpartition argsort argwhere "
    "around array array2string array_equal array_split asarray asanyarray atleast_1d atleast_2d "
    "average bincount bool_ broadcast_to c_ cbrt ceil clip column_stack complex128 concatenate "
    "conj convolve copy corrcoef correlate cos cosh count_nonzero cov cross cumprod cumsum "
    "datetime64 deg2rad degrees delete diag diagonal diff digitize divide dot dstack e ediff1d "
    "einsum empty empty_like equal errstate exp exp2 expand_dims expm1 eye finfo fix flatnonzero "
    "flip fliplr flipud float16 float32 float64 floor floor_divide fmod full full_like gcd "
    "geomspace gradient greater greater_equal heaviside histogram histogram2d "
    "histogram_bin_edges histogramdd "
    "hsplit hstack hypot identity iinfo imag in1d inf Inf insert int8 int16 int32 int64 integer "
    "interp intersect1d invert isclose isfinite isin isinf isnan isreal isscalar kron lcm less "
    "less_equal lexsort linspace log log10 log1p log2 logaddexp logical_and logical_not "
    "logical_or logical_xor logspace mask_indices matmul max maximum mean median meshgrid mgrid "
    "min minimum mod moveaxis multiply nan NaN nan_to_num nanargmax nanargmin nancumsum nanmax "
    "nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar ndarray "
    "ndenumerate ndim negative newaxis nonzero not_equal number object_ ogrid ones ones_like "
    "outer pad partition percentile pi piecewise poly1d polyfit polyval power prod ptp quantile "
    "r_ rad2deg radians random ravel real reciprocal remainder repeat reshape resize rint roll "
    "rollaxis roots rot90 round row_stack s_ searchsorted select set_printoptions setdiff1d "
    "setxor1d shape sign sin sinc sinh size sort split sqrt square squeeze stack std subtract sum "
    "swapaxes take take_along_axis tan tanh tensordot tile timedelta64 trace transpose trapezoid "
    "trapz tri tril trim_zeros triu true_divide trunc uint8 uint16 uint32 uint64 union1d unique "
    "unravel_index vander var vdot vectorize vsplit vstack where zeros zeros_like printoptions "
    "__version__ fft linalg polynomial char str_ floating generic nanstd",
    "numpy.random": "seed rand randn randint random random_sample uniform normal standard_normal "
    "choice permutation binomial poisson exponential gamma beta multivariate_normal lognormal "
    "default_rng RandomState Generator laplace chisquare geometric dirichlet multinomial "
    "triangular weibull pareto logistic sample",
    "numpy.linalg": "norm inv pinv det eig eigh eigvals eigvalsh svd solve lstsq qr cholesky "
    "matrix_rank matrix_power cond slogdet multi_dot LinAlgError",
    "numpy.fft": "fft ifft rfft irfft fft2 ifft2 fftn fftfreq rfftfreq fftshift ifftshift",
    "numpy.polynomial": "Polynomial Chebyshev Legendre",
    "numpy.testing": "assert_allclose assert_array_equal assert_array_almost_equal",
    "math": "*",
    "cmath": "*",
    "statistics": "mean fmean median median_low median_high mode multimode stdev pstdev variance "
    "pvariance quantiles geometric_mean harmonic_mean correlation covariance linear_regression "
    "NormalDist StatisticsError",
    "random": "random randint randrange choice choices sample uniform gauss normalvariate seed "
    "Random betavariate expovariate triangular getrandbits",
    "datetime": "datetime date time timedelta timezone UTC",
    "datetime.datetime": "now today utcnow fromtimestamp strptime fromisoformat combine min max",
    "datetime.date": "today fromisoformat fromtimestamp min max",
    "datetime.timezone": "utc",
    "time": "time sleep perf_counter process_time monotonic strftime localtime gmtime time_ns "
    "perf_counter_ns ctime strptime",
    "zoneinfo": "ZoneInfo",
    "calendar": "month_name month_abbr day_name day_abbr monthrange isleap",
    "decimal": "Decimal ROUND_HALF_UP getcontext",
    "fractions": "Fraction",
    "collections": "Counter defaultdict OrderedDict namedtuple deque ChainMap",
    "collections.abc": "Iterable Iterator Mapping Sequence Callable Generator Set",
    "itertools": "accumulate chain combinations combinations_with_replacement compress count "
    "cycle dropwhile filterfalse groupby islice pairwise permutations product repeat starmap "
    "takewhile tee zip_longest batched",
    "itertools.chain": "from_iterable",
    "functools": "cache cached_property lru_cache partial reduce wraps total_ordering "
    "cmp_to_key singledispatch",
    "operator": "add sub mul truediv floordiv mod itemgetter eq ne lt le gt ge and_ or_ not_ neg",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation whitespace "
    "printable capwords Template",
    "re": "compile findall finditer fullmatch match search split sub subn escape I IGNORECASE M "
    "MULTILINE S DOTALL X VERBOSE Pattern Match error",
    "textwrap": "dedent fill indent shorten wrap",
    "unicodedata": "normalize category name",
    "difflib": "get_close_matches unified_diff SequenceMatcher ndiff",
    "json": "dumps loads load JSONDecodeError JSONEncoder",
    "csv": "reader DictReader Sniffer QUOTE_ALL QUOTE_MINIMAL",
    "io": "StringIO BytesIO",
    "base64": "b64encode b64decode",
    "hashlib": "md5 sha1 sha256 sha512 new",
    "uuid": "uuid4 uuid1 UUID",
    "bisect": "bisect bisect_left bisect_right",
    "heapq": "nlargest nsmallest merge",
    "copy": "copy deepcopy",
    "pprint": "pprint pformat",
    "warnings": "filterwarnings simplefilter warn catch_warnings",
    "contextlib": "contextmanager suppress nullcontext",
    "dataclasses": "dataclass field asdict astuple replace fields",
    "abc": "ABC abstractmethod",
    "enum": "Enum IntEnum StrEnum Flag auto unique",
    "typing": "*",
    "typing_extensions": "*",
    "__future__": "*",
    "types": "SimpleNamespace",
    "logging": "getLogger info warning debug error INFO WARNING DEBUG ERROR",
    "os": "getcwd sep linesep name cpu_count getpid curdir extsep pathsep PathLike fspath",
    "os.path": "join exists isfile isdir basename dirname splitext split abspath getsize getmtime "
    "relpath normpath sep isabs commonpath",
    "sys": "version version_info getsizeof maxsize platform byteorder float_info executable "
    "getrecursionlimit implementation stdout stderr",
    "platform": "python_version platform system machine",
    "pathlib": "Path PurePath PosixPath PurePosixPath",
    "pathlib.Path": "cwd",
    "fnmatch": "fnmatch filter",
    "importlib.metadata": "version",
    "tqdm": "tqdm trange",
    "tqdm.auto": "tqdm trange",
    "tqdm.notebook": "tqdm trange",
    "tabulate": "tabulate",
    "humanize": "naturalsize intcomma naturaltime",
    "IPython.display": "display Markdown clear_output Latex Math Pretty Code",
    "IPython.core.display": "display",
    "matplotlib": "rcParams __version__ cm colors dates ticker patches lines rc colormaps",
    "matplotlib.rcParams": "update",
    "matplotlib.colors": "Normalize LogNorm ListedColormap LinearSegmentedColormap to_hex to_rgba "
    "to_rgb BoundaryNorm TwoSlopeNorm TABLEAU_COLORS",
    "matplotlib.dates": "DateFormatter MonthLocator YearLocator DayLocator WeekdayLocator "
    "AutoDateLocator ConciseDateFormatter date2num num2date HourLocator",
    "matplotlib.ticker": "FuncFormatter MaxNLocator MultipleLocator PercentFormatter "
    "ScalarFormatter StrMethodFormatter FormatStrFormatter LogLocator EngFormatter",
    "matplotlib.patches": "Rectangle Circle Polygon Patch FancyBboxPatch FancyArrowPatch Ellipse",
    "matplotlib.lines": "Line2D",
    "matplotlib.gridspec": "GridSpec",
    "scipy": "stats optimize signal interpolate integrate linalg spatial ndimage special sparse "
    "cluster fft __version__",
    "scipy.optimize": "minimize minimize_scalar curve_fit root root_scalar fsolve brentq linprog "
    "least_squares differential_evolution linear_sum_assignment newton bisect",
    "scipy.integrate": "quad dblquad odeint solve_ivp simpson trapezoid cumulative_trapezoid",
    "scipy.interpolate": "interp1d UnivariateSpline CubicSpline griddata splrep splev",
    "scipy.signal": "find_peaks savgol_filter butter filtfilt lfilter welch spectrogram detrend "
    "periodogram convolve correlate medfilt hilbert sosfilt freqz",
    "scipy.spatial": "distance KDTree cKDTree ConvexHull Delaunay Voronoi",
    "scipy.spatial.distance": "pdist squareform cdist euclidean cosine cityblock jaccard",
    "scipy.cluster.hierarchy": "linkage fcluster",
    "scipy.ndimage": "gaussian_filter median_filter label uniform_filter sobel zoom rotate",
    "scipy.special": "expit logit gamma beta erf factorial comb softmax logsumexp binom",
    "scipy.sparse": "csr_matrix csc_matrix coo_matrix hstack vstack issparse",
    "statsmodels.api": "OLS GLM Logit WLS RLM add_constant families tsa stats",
    "statsmodels.formula.api": "",
    "statsmodels.tsa.seasonal": "seasonal_decompose STL",
    "statsmodels.tsa.stattools": "adfuller acf pacf kpss grangercausalitytests",
    "statsmodels.tsa.arima.model": "ARIMA",
    "statsmodels.tsa.holtwinters": "ExponentialSmoothing SimpleExpSmoothing Holt",
    "statsmodels.stats.outliers_influence": "variance_inflation_factor",
    "statsmodels.stats.multicomp": "pairwise_tukeyhsd",
    "statsmodels.stats.proportion": "proportions_ztest",
    "sklearn.model_selection": "train_test_split cross_val_score cross_validate cross_val_predict "
    "learning_curve validation_curve",
    "sklearn.datasets": "load_iris load_wine load_digits load_diabetes load_breast_cancer "
    "make_blobs make_classification make_regression make_moons make_circles",
    "sklearn.pipeline": "make_pipeline make_union",
    "sklearn.compose": "make_column_transformer make_column_selector",
    "sklearn.metrics": "*",
    "sklearn.inspection": "permutation_importance",
    "sklearn.base": "clone",
    "polars": "DataFrame Series col lit when concat Int64 Float64 Utf8 String Date Datetime len "
    "count sum mean min max all exclude duration date datetime struct element __version__",
    "xarray": "DataArray Dataset concat merge",
    "networkx": "Graph DiGraph degree_centrality betweenness_centrality shortest_path "
    "connected_components density average_clustering pagerank from_pandas_edgelist spring_layout",
    "PIL": "Image",
    "lifelines": "KaplanMeierFitter CoxPHFitter",
}

_PLOT_TEXT: Final[Mapping[str, str]] = {
    "matplotlib.pyplot": "acorr annotate annotations arrow autoscale axes axhline axhspan axis "
    "axline axvline axvspan bar bar_label barbs barh boxplot cla clabel clf clim close colorbar "
    "contour contourf draw errorbar figlegend fignum_exists figtext figure fill fill_between "
    "fill_betweenx gca gcf get_cmap get_fignums grid hexbin hist hist2d hlines imshow ioff ion "
    "legend loglog margins matshow minorticks_on pause pcolor pcolormesh pie plot polar quiver rc "
    "rcParams rcdefaults scatter sca semilogx semilogy set_cmap show specgram spy stackplot stairs "
    "stem step streamplot style subplot subplot_mosaic subplots subplots_adjust subplot2grid "
    "suptitle table text tick_params ticklabel_format tight_layout title tricontour tricontourf "
    "triplot twinx twiny violinplot vlines xcorr xlabel xlim xscale xticks ylabel ylim yscale "
    "yticks cm rc_context Axes Figure Line2D Normalize Rectangle",
    "matplotlib.pyplot.style": "available context",
    "matplotlib.pyplot.cm": "*",
    "matplotlib.cm": "*",
    "matplotlib.pyplot.rcParams": "update",
    "matplotlib.figure": "Figure",
    "pandas.plotting": "scatter_matrix autocorrelation_plot lag_plot parallel_coordinates",
    "seaborn": "*",
    "plotly.express": "*",
    "plotly.graph_objects": "*",
    "plotly.subplots": "make_subplots",
    "altair": "*",
    "bokeh.plotting": "figure show",
    "scipy.stats": "",
    "scipy.cluster.hierarchy": "dendrogram",
    "statsmodels.graphics.tsaplots": "plot_acf plot_pacf",
    "networkx": "draw draw_networkx draw_spring draw_circular",
}

_READ_TEXT: Final[Mapping[str, str]] = {
    "os": "listdir scandir walk stat",
    "glob": "glob iglob",
    "polars": "scan_csv scan_parquet",
}

CHECKED: Final[frozenset[str]] = frozenset(
    (
        "builtins.open",
        "io.open",
        "builtins.getattr",
        "builtins.type",
        "matplotlib.pyplot.style.use",
        "matplotlib.pyplot.imread",
        "matplotlib.image.imread",
        "PIL.Image.open",
        "numpy.load",
        "numpy.loadtxt",
        "numpy.genfromtxt",
        "numpy.fromfile",
        "xarray.open_dataset",
        *_names(
            "pandas",
            "read_csv read_table read_excel read_json read_parquet read_feather read_fwf read_html "
            "read_xml read_orc read_stata read_sas read_spss ExcelFile",
        ),
        *_names("polars", "read_csv read_parquet read_json read_ndjson read_excel"),
    )
)
"""Functions whose arguments decide. They may only be called by name, not be passed on."""

_ANY_CLASS: Final = (
    "sklearn.calibration sklearn.cluster sklearn.compose sklearn.cross_decomposition "
    "sklearn.decomposition sklearn.discriminant_analysis sklearn.dummy sklearn.ensemble "
    "sklearn.feature_extraction.text sklearn.feature_selection sklearn.gaussian_process "
    "sklearn.gaussian_process.kernels sklearn.impute sklearn.inspection sklearn.isotonic "
    "sklearn.kernel_ridge sklearn.linear_model sklearn.manifold sklearn.mixture "
    "sklearn.model_selection sklearn.multiclass sklearn.naive_bayes sklearn.neighbors "
    "sklearn.neural_network sklearn.pipeline sklearn.preprocessing sklearn.svm "
    "sklearn.tree sklearn.base xgboost lightgbm catboost"
).split()
"""Modules of which all classes compute only."""

_ANY_FUNCTION: Final = (
    "scipy.stats scipy.linalg scipy.fft scipy.constants sklearn.metrics.pairwise "
    "sklearn.feature_selection statsmodels.formula.api math"
).split()
"""Modules of which all public names compute only."""

_MODULE_NAMES: Final = frozenset(sys.stdlib_module_names) - {"statistics"} | {
    *(
        "np pd plt mpl sp scipy numpy pandas matplotlib utils api io mpl_fig_module base core"
    ).split()
}
"""Names that a module may have from its own imports, and that no wildcard covers."""


def _flat(text: Mapping[str, str], harm: Harm) -> dict[str, Harm]:
    return {
        f"{prefix}.{word}": harm
        for prefix, words in text.items()
        for word in words.split()
        if word != "*"
    }


_KNOWN: Final[Mapping[str, Harm]] = {
    **_flat(_PURE_TEXT, PURE),
    **_flat(_PLOT_TEXT, PLOT),
    **_flat(_READ_TEXT, READ),
    **{
        f"builtins.{name}": PURE
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    },
    **dict.fromkeys(CHECKED, PURE),
    **HARMFUL,
}

_WILD: Final[Mapping[str, Harm]] = {
    **{name: PURE for name, words in _PURE_TEXT.items() if words == "*"},
    **dict.fromkeys(_ANY_FUNCTION, PURE),
    **{name: PLOT for name, words in _PLOT_TEXT.items() if words == "*"},
}

MODULES: Final[frozenset[str]] = frozenset(
    part
    for name in (*_PURE_TEXT, *_PLOT_TEXT, *_READ_TEXT, *_ANY_CLASS, *_ANY_FUNCTION)
    if not name[name.rfind(".") + 1 :][:1].isupper()
    and not name.startswith(("builtins.", "datetime.", "itertools."))
    for part in [".".join(name.split(".")[: count + 1]) for count in range(name.count(".") + 1)]
) - {"matplotlib.rcParams", "matplotlib.pyplot.rcParams", "importlib", "builtins", "types"}
"""Modules that may be imported."""

IMPORTED_AS: Final[Mapping[str, str]] = {
    "pd": "pandas",
    "np": "numpy",
    "plt": "matplotlib.pyplot",
    "mpl": "matplotlib",
    "sns": "seaborn",
    "px": "plotly.express",
    "go": "plotly.graph_objects",
    "alt": "altair",
    "pl": "polars",
    "xr": "xarray",
    "nx": "networkx",
    "sm": "statsmodels.api",
    "smf": "statsmodels.formula.api",
    "dt": "datetime",
    "datetime": "datetime.datetime",
    "timedelta": "datetime.timedelta",
    "date": "datetime.date",
    "Path": "pathlib.Path",
    "Counter": "collections.Counter",
    "defaultdict": "collections.defaultdict",
    "deque": "collections.deque",
    "reduce": "functools.reduce",
    "partial": "functools.partial",
    "glob": "glob",
    "tqdm": "tqdm.tqdm",
    "stats": "scipy.stats",
    "train_test_split": "sklearn.model_selection.train_test_split",
    "StandardScaler": "sklearn.preprocessing.StandardScaler",
    "LinearRegression": "sklearn.linear_model.LinearRegression",
    **{
        name: name
        for name in (
            "os sys re json math random time itertools functools collections subprocess shutil "
            "requests urllib socket pickle io csv string statistics copy warnings matplotlib "
            "pandas numpy scipy seaborn sklearn pathlib operator logging"
        ).split()
    },
}
"""What common names mean that no cell of this source defines."""


def harm_of(path: str) -> Harm | None:
    """Return what using a dotted name does; None if the rules do not know it."""
    known = _KNOWN.get(path)
    if known is not None:
        return known
    if path in MODULES:
        return PURE
    parent, _, name = path.rpartition(".")
    while parent:
        if parent in HARMFUL_MODULES:
            return HARMFUL_MODULES[parent]
        parent = parent.rpartition(".")[0]
    if path in HARMFUL_MODULES:
        return HARMFUL_MODULES[path]
    parent = path.rpartition(".")[0]
    if name.startswith("_") or name in _MODULE_NAMES:
        return None
    if parent in _WILD:
        return _WILD[parent]
    if parent in _ANY_CLASS and name[:1].isupper():
        return PURE
    if parent and parent not in MODULES and harm_of(parent) in (PURE, PLOT):
        # A method that is named through its class or object: `str.upper`, `norm.cdf`.
        return PURE if name in _PURE_METHODS else HARMFUL_METHODS.get(name)
    return None


_PURE_METHODS: Final = frozenset(
    # pandas, polars
    (
        "abs add add_prefix add_suffix agg aggregate align all any apply applymap argmax "
        "argmin argsort asfreq asof assign astype at_time autocorr between between_time bfill "
        "bool capitalize cat categories ceil clip codes collect combine combine_first compare "
        "contains convert_dtypes copy corr corrwith count count_values cov cummax cummin "
        "cumprod cumsum cut date day_name describe diff div divide dot drop drop_duplicates "
        "drop_nulls droplevel dropna dt duplicated endswith eq equals ewm expanding explode "
        "extract extractall factorize ffill fill_nan fill_null fillna filter find first "
        "first_valid_index floor floordiv from_dict ge get get_dummies get_group "
        "get_level_values group_by groupby gt has_nans head idxmax idxmin infer_objects info "
        "interpolate is_between is_in is_monotonic_increasing is_null is_unique isalpha "
        "isdigit isin isna isnull isnumeric items iterrows itertuples join keys kurt kurtosis "
        "last last_valid_index lazy le len ljust lower lstrip lt mad map mask match max mean "
        "median melt memory_usage merge merge_asof min mod mode month_name mul multiply ne "
        "ngroups nlargest normalize not_null notna notnull nsmallest nth nunique ohlc over "
        "pad pct_change pivot pivot_table pow prod product quantile query rank ravel reindex "
        "reindex_like removeprefix removesuffix rename_axis reorder_levels repeat replace_all "
        "resample reset_index rolling round rsplit rstrip sample schema searchsorted select "
        "select_dtypes sem set_axis set_index shift size skew slice sort_index sort_values "
        "sort split squeeze stack startswith std strftime strip sub subtract sum swaplevel "
        "tail take title to_date to_datetime to_dict to_dummies to_frame to_list to_numpy "
        "to_pandas to_period to_pydatetime to_records to_series to_timestamp tolist "
        "total_seconds transform transpose truediv truncate tz_convert tz_localize unique "
        "unnest unstack upper value_counts values var view where with_columns with_row_index "
        "xs zfill alias cast is_not_null len_chars to_uppercase to_lowercase then otherwise "
        "dt_year concat_str set_caption background_gradient format highlight_max "
        "highlight_min bar hide set_properties format_index set_table_styles round_ stripped "
        "wrap year month day hour tz_convert week isocalendar weekday month_start asi8 item "
        "nbytes cumcount ngroup indices idx level_values swapaxes reindex_axis "
        "remove_unused_categories add_categories as_ordered set_categories rename_categories "
        "reorder_categories argpartition byteswap choose compress conj conjugate cumulative "
        "diagonal flatten nonzero partition ptp reshape swapaxes trace tobytes integers "
        "normal uniform random choice standard_normal permutation poisson binomial "
        "exponential multivariate_normal lognormal rand randn randint beta gamma spawn "
        "casefold center count decode encode expandtabs fromkeys hex index isalnum isascii "
        "islower isspace istitle isupper ljust maketrans partition rfind rindex rjust "
        "rpartition splitlines swapcase title translate difference intersection isdisjoint "
        "issubset issuperset union symmetric_difference as_integer_ratio is_integer "
        "bit_length conjugate most_common elements isoformat timestamp date time timetuple "
        "toordinal isoweekday combine timetz utcoffset group groups groupdict span start end "
        "findall finditer fullmatch search sub split exists is_file is_dir glob rglob iterdir "
        "stat resolve absolute joinpath with_suffix with_name with_stem relative_to as_posix "
        "read read_text readline readlines getvalue sheet_names parse hexdigest digest seek "
        "close predict predict_proba predict_log_proba decision_function score fit_predict "
        "transform inverse_transform get_feature_names_out get_params fit_transform "
        "get_support summary conf_int forecast get_forecast summary_frame pdf cdf ppf rvs "
        "logpdf sf isf interval pvalues rsquared wald_test f_test t_test get_prediction "
        "anova_lm evaluate cost_complexity_pruning_path apply_along kneighbors staged_predict "
        "split warning debug error critical exception from_iterable total_ordering "
        "set_description update_to"
    ).split()
)

_PLOT_METHODS: Final = frozenset(
    (
        "plot scatter hist bar barh boxplot violinplot pie line area kde density hexbin box "
        "axhline axvline axhspan axvspan axline fill_between fill_betweenx errorbar step stem "
        "stackplot imshow pcolormesh contour contourf quiver streamplot hist2d annotate text "
        "table legend grid set_title set_xlabel set_ylabel set_zlabel set_xlim set_ylim "
        "set_zlim set_xticks set_yticks set_xticklabels set_yticklabels set_xscale set_yscale "
        "set_aspect set_axis_off set_axis_on set_facecolor set_major_formatter "
        "set_major_locator set_minor_locator set_visible set_label set_linewidth set_color "
        "set_alpha set_linestyle set_rotation set_ha set_size_inches set_box_aspect "
        "set_tight_layout set_axisbelow set_ticks set_ticklabels set_fontsize set_position "
        "set_prop_cycle set_theta_zero_location set_under set_over set_bad tick_params "
        "ticklabel_format suptitle tight_layout subplots_adjust colorbar autofmt_xdate twinx "
        "twiny add_subplot add_axes add_patch add_artist add_line add_collection subplots "
        "axis invert_xaxis invert_yaxis margins vlines hlines bar_label matshow spy "
        "get_figure get_legend_handles_labels get_xlim get_ylim get_xticks get_yticks "
        "get_xticklabels get_yticklabels get_height get_width get_x get_y get_legend "
        "get_lines get_cmap hist_series label_outer set_titles set_axis_labels add_legend "
        "map_dataframe refline despine set_xticks_labels text_bar show draw relim autoscale "
        "autoscale_view constrained_layout update_layout update_traces update_xaxes "
        "update_yaxes add_trace add_hline add_vline add_shape add_annotation add_bar "
        "add_scatter for_each_trace update_annotations mark_bar mark_line mark_point "
        "mark_circle mark_area mark_rect mark_tick mark_boxplot mark_arc mark_text encode "
        "properties interactive facet transform_filter transform_aggregate configure_axis "
        "configure_view plot_diagnostics set"
    ).split()
)

HARMFUL_METHODS: Final[Mapping[str, Harm]] = {
    **dict.fromkeys(
        (
            "to_parquet to_excel to_pickle to_feather to_hdf to_stata to_orc to_xml to_netcdf "
            "to_zarr tofile dump savefig save savetxt save_model write write_text write_bytes "
            "writelines write_csv write_parquet write_json write_excel write_ipc write_html "
            "write_image sink_csv sink_parquet to_disk save_weights save_pretrained export touch "
            "to_file writerow writerows writeheader"
        ).split(),
        WRITE,
    ),
    **dict.fromkeys(("unlink", "rmdir", "rmtree", "removedirs"), DELETE),
    **dict.fromkeys(
        (
            "mkdir makedirs symlink_to hardlink_to link_to chmod lchmod chown rename_to move "
            "extractall_to extract_to truncate_file copytree copyfile"
        ).split(),
        MOVE,
    ),
    **dict.fromkeys(
        (
            "to_sql to_gbq to_clipboard push_to_hub send sendall connect post put patch urlopen "
            "urlretrieve request download fetch upload"
        ).split(),
        NETWORK,
    ),
    **dict.fromkeys(
        (
            "system popen Popen check_output check_call run_cell run_line_magic run_cell_magic "
            "getoutput magic"
        ).split(),
        SHELL,
    ),
    **dict.fromkeys(["eval", "exec", "pipe_to"], DYNAMIC),
    **dict.fromkeys(["modules", "environ", "meta_path"], INTERNALS),
}
"""Attributes that need approval, called or not."""

TEXT_WRITERS: Final = frozenset(("to_csv to_json to_html to_markdown to_latex to_string").split())
"""Methods that return a text when they get no path, and else write a file."""

MUTATING_METHODS: Final = frozenset(
    (
        "append appendleft extend insert pop popleft popitem clear update setdefault remove "
        "discard reverse fill put itemset setflags setfield resize shuffle fit partial_fit "
        "set_params intersection_update difference_update symmetric_difference_update rotate "
        "subtract_counts add_node add_edge add_nodes_from add_edges_from fit_generator "
        "compile_model"
    ).split()
)
"""Methods that change the object that they are called on."""

MUTATES_FIRST: Final = frozenset(
    (
        *_names("numpy", "copyto put place putmask fill_diagonal put_along_axis"),
        *_names("numpy.random", "shuffle"),
        "random.shuffle",
        *_names("heapq", "heappush heappop heapify heapreplace heappushpop"),
        *_names("bisect", "insort insort_left insort_right"),
        *_names("operator", "setitem delitem iadd"),
    )
)
"""Functions that change their first argument."""

ALIASING: Final = frozenset(
    (
        *_names("builtins", "next iter max min reversed enumerate zip filter map getattr"),
        *_names(
            "numpy",
            "asarray asanyarray ravel reshape squeeze atleast_1d atleast_2d transpose "
            "swapaxes moveaxis broadcast_to expand_dims diagonal rollaxis flip split hsplit",
        ),
        *_names("itertools", "chain islice cycle repeat tee groupby"),
        *_names("matplotlib.pyplot", "gca gcf"),
    )
)
"""Functions whose results may share what their arguments hold."""

ALIASING_METHODS: Final = frozenset(
    (
        "get items values keys view reshape ravel squeeze swapaxes transpose groupby rolling "
        "iterrows itertuples to_numpy get_group head tail take_view setdefault pop popleft "
        "popitem resample set_axis xs diagonal truncate first last elements"
    ).split()
)
"""Methods whose results may share what the object holds."""

CALLABLE_RESULTS: Final = frozenset(
    (
        *_names("functools", "partial lru_cache cache wraps cmp_to_key"),
        *_names("numpy", "vectorize poly1d polynomial.Polynomial"),
        *_names("scipy.interpolate", "interp1d UnivariateSpline CubicSpline"),
        *_names("matplotlib.pyplot", "get_cmap"),
        "scipy.stats.gaussian_kde",
        "operator.itemgetter",
        "collections.namedtuple",
    )
)
"""Functions whose results are functions that compute only."""

TRANSPARENT: Final = frozenset(
    ("loc iloc at iat values flat T dt str cat array columns index real imag axes").split()
)
"""Attributes that are a view of the object itself."""

CALLBACK_METHODS: Final = frozenset(
    (
        "apply map applymap agg aggregate transform pipe filter map_elements map_dataframe "
        "map_batches map_rows combine"
    ).split()
)
"""Methods that call what they get."""

CALLBACK_FUNCTIONS: Final = frozenset(
    (
        *_names("builtins", "map filter iter property staticmethod classmethod"),
        *_names(
            "functools",
            "partial reduce cmp_to_key lru_cache cache wraps singledispatch "
            "total_ordering cached_property",
        ),
        *_names("itertools", "starmap accumulate groupby dropwhile takewhile filterfalse"),
        *_names("numpy", "vectorize apply_along_axis piecewise"),
        *_names(
            "scipy.optimize",
            "minimize minimize_scalar curve_fit root root_scalar fsolve "
            "brentq least_squares differential_evolution newton bisect",
        ),
        *_names("scipy.integrate", "quad dblquad odeint solve_ivp"),
        "matplotlib.ticker.FuncFormatter",
        "sklearn.metrics.make_scorer",
        "sklearn.preprocessing.FunctionTransformer",
        "collections.defaultdict",
        "contextlib.contextmanager",
    )
)
"""Functions that call what they get first."""

CALLBACK_KEYWORDS: Final = frozenset(
    (
        "key func function default_factory converters date_parser callback scoring aggfunc "
        "formatter func_formatter default object_hook object_pairs_hook parse_float parse_int "
        "parse_constant cls statistic estimator func1d pyfunc file_handler on_bad_lines "
        "preprocessor tokenizer analyzer metric kernel errors_handler method_callback"
    ).split()
)
"""Keywords whose values are called."""

CALLED_OR_NAMED: Final = frozenset(("estimator", "metric", "scoring", "kernel", "cls", "default"))
"""Those of them whose values are often not functions."""

DECORATORS: Final = frozenset(
    (
        *_names("builtins", "property staticmethod classmethod"),
        *_names("functools", "lru_cache cache cached_property wraps total_ordering singledispatch"),
        "dataclasses.dataclass",
        "abc.abstractmethod",
        "contextlib.contextmanager",
        "enum.unique",
        "typing.overload",
        "numpy.vectorize",
    )
)

HARMLESS_DUNDERS: Final = frozenset(("__name__", "__version__", "__doc__", "__file__"))
"""Special names that code may use."""

LINE_COMMANDS: Final = frozenset(
    (
        "ls ll lf lk lx ldir cd pwd rm rmdir mkdir mv cp cat man more less clear pip conda "
        "mamba uv micromamba env set_env run reset reset_selective history hist who "
        "who_ls run sx sc system bash sh time timeit prun load loadpy edit save store rerun "
        "recall rehashx logstart quickref lsmagic magic alias unalias bookmark dirs pushd "
        "popd dhist debug pdb macro notebook xdel xmode colors config cpaste paste pycat "
        "pfile psource killbgscripts autocall"
    ).split()
)
"""Words that IPython takes for a command when they begin a cell of one line."""

_DATA_TYPES: Final = (
    "builtins. pandas. numpy. matplotlib. seaborn. scipy. sklearn. polars. xarray. "
    "datetime. collections. decimal. fractions. statsmodels. plotly. altair. networkx. "
    "re. xgboost. lightgbm. itertools. zoneinfo. uuid. pathlib. _io.StringIO _io.BytesIO"
).split()


def is_data_type(name: str) -> bool:
    """Return whether a type, by its full name, is one whose known methods can be trusted."""
    return name.startswith(tuple(_DATA_TYPES)) and not name.startswith("builtins.function")


def method_harm(name: str) -> Harm | None:
    """Return what a method with this name does; None if the rules do not know it."""
    if name in HARMFUL_METHODS:
        return HARMFUL_METHODS[name]
    if name in _PLOT_METHODS:
        return PURE if name in _PURE_METHODS else PLOT
    if name in _PURE_METHODS or name in MUTATING_METHODS or name in ("replace", "rename"):
        return PURE
    return PURE if name in TEXT_WRITERS or name in ("open", "add") else None
