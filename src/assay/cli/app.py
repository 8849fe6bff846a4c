"""The commands and their options. Each imports what it needs when it runs, so that `assay --help` is quick.

Exit codes: 0 done, 1 verification failed, 2 bad usage or bad data, 3 drift
(`predict --fail-on-drift`), 4 an error of Assay itself, 130 stopped.
"""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="assay",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Machine learning in which every fitted model carries a certificate.",
)

Source = Annotated[
    str,
    typer.Argument(
        help="A file (CSV, Parquet, JSON, Excel; .gz, .zip), - for standard input, or a bundled table such as credit.",
        show_default=False,
    ),
]
ModelFile = Annotated[Path, typer.Argument(help="A file written by assay learn.", show_default=False)]


@app.callback(invoke_without_command=True)
def _program(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        import assay

        typer.echo(f"assay {assay.__version__}")
        raise typer.Exit


def _option(text: str, *names: str, **more: Any) -> Any:
    """Return an option whose default, nothing, is not shown."""
    return typer.Option(*names, help=text, show_default=False, **more)


@app.command()
def learn(
    source: Source,
    target: Annotated[str, _option("The column to predict; bundled tables have a default.")] = "",
    time: Annotated[float | None, _option("Time budget in seconds; by default at most 60.")] = None,
    trials: Annotated[
        int | None, _option("Number of settings to evaluate instead; reproducible on any machine.")
    ] = None,
    metric: Annotated[str, _option("error, balanced, logloss, auc, brier or f1; mae, rmse or r2 for regression.")] = "",
    cost: Annotated[
        Path | None, _option("A CSV file: row i, column j is the cost of predicting j if i is true.")
    ] = None,
    confidence: Annotated[str, typer.Option(help="Confidence level of the statements about new data.")] = "0.95",
    holdout: Annotated[
        float | None,
        typer.Option(help="Share of the rows in the hold-out set; by default a quarter, less of many rows."),
    ] = None,
    certify: Annotated[
        str, typer.Option(help="holdout: bounds from a hold-out set. folds: cross-validation, no row is held out.")
    ] = ("holdout"),
    folds: Annotated[int, typer.Option(min=2, help="Number of folds with --certify folds; their models vote.")] = 3,
    learners: Annotated[str, _option("Learners to compare, comma-separated; all for every suitable one.")] = "",
    exclude: Annotated[str, _option("Learners to leave out, comma-separated.", "--exclude", "--without")] = "",
    force: Annotated[bool, typer.Option("--force", help="Try the named learners even on many rows.")] = False,
    workers: Annotated[int | None, _option("Number of worker processes; by default all cores.", min=0)] = None,
    group: Annotated[str, _option("Rows with the same value of this column stay together.")] = "",
    time_column: Annotated[str, _option("Hold out the newest rows by this column.", "--time-column")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the split, the search and the learners.")] = 0,
    clip: Annotated[
        float | None, _option("Regression: clip errors at this value; by default from the training set.")
    ] = None,
    task: Annotated[str, _option("classify or regress; by default inferred from the target.")] = "",
    nominal: Annotated[str, _option("Numeric columns to read as categories, comma-separated.")] = "",
    ordered: Annotated[list[str] | None, _option("An ordered column and its levels: size=small,medium,large.")] = None,
    drop: Annotated[str, _option("Columns to drop, comma-separated.")] = "",
    out: Annotated[Path, typer.Option(help="The model file to write.")] = Path("model.assay"),
    report: Annotated[Path, typer.Option(help="The report to write.")] = Path("report.html"),
    log: Annotated[Path | None, _option("Log file, one line per event.")] = None,
    looks: Annotated[
        int,
        typer.Option(min=0, help="Split the hold-out set in advance into this many parts, one for each study."),
    ] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep scores in OUT.scores, from which the same command resumes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """Select, fit and certify the best model for a table within the time budget; write the model and a report.

    Ctrl-C once ends the search and keeps the best so far; twice quits.
    """
    from assay.fork_server import LEARNERS, started_early

    with nullcontext() if workers == 0 else started_early(*LEARNERS), _messages():
        from assay.cli import learning

        options = learning.Options(
            time, trials, metric or None, learning.cost_matrix(cost), confidence, holdout, certify, folds,
            _words(learners), _words(exclude), group or None, time_column or None, seed, clip, task or None, force,
            workers, looks or None,
        )  # fmt: skip
        levels = dict(learning.parse_ordered(item) for item in ordered or ())
        reading = learning.Reading(_words(nominal), levels, _words(drop))
        learning.learn(source, target, options, reading, learning.Output(out, report, as_json, quiet, log, resume))


@app.command()
def verify(
    model: ModelFile,
    source: Annotated[str, typer.Argument(help="The table that the model was trained on.", show_default=False)] = "",
    audit: Annotated[
        bool, typer.Option("--audit", help="Print the files and lines that the verdict rests on, and exit.")
    ] = False,
    limit: Annotated[
        float | None,
        typer.Option(help="Time limit in seconds; claims not checked by then count as unchecked.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check the certificate of a model against the table that it was trained on."""
    from assay.cli import models

    with _messages():
        if audit:
            models.audit(model)
            return
        if not source:
            raise ValueError("name the table that the model was learnt from: assay verify model.assay data.csv.")
        holds = models.verify(model, source, limit, as_json)
    if not holds:
        raise typer.Exit(1)


@app.command()
def predict(
    model: ModelFile,
    source: Source,
    out: Annotated[
        Path | None,
        typer.Option(help="A .csv or .parquet file; printed as CSV if left out.", show_default=False),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw/--safe-csv",
            help="CSV: write labels unchanged, or with ' before those that a spreadsheet would execute as formulas.",
        ),
    ] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Also write the probability of each class.")] = False,
    sets: Annotated[
        float | None,
        typer.Option(help="Classification: write prediction sets with this coverage.", show_default=False),
    ] = None,
    intervals: Annotated[
        float | None,
        typer.Option(help="Regression: write prediction intervals with this coverage.", show_default=False),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Two classes: predict the second from this probability on.", show_default=False),
    ] = None,
    keep: Annotated[str, _option("Columns of the input to copy, comma-separated, or all.", "--keep", "--id")] = "",
    fail_on_drift: Annotated[
        bool, typer.Option("--fail-on-drift", help="Exit with 3 if the rows have drifted from the training set.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: predictions, drift, notes.")] = False,
) -> None:
    """Predict the target of each row of a table, and warn if its rows have drifted from the training set.

    Files are streamed and may be larger than memory.
    """
    from assay.cli import predicting

    with _messages():
        asked = predicting.Asked(proba, sets, intervals, threshold, _words(keep))
        alike = predicting.predict(model, source, out, raw, asked, as_json)
    if fail_on_drift and not alike:
        raise typer.Exit(3)


@app.command()
def compare(
    first: ModelFile,
    second: ModelFile,
    source: Annotated[str, typer.Argument(help="A table with the target.", show_default=False)],
    confidence: Annotated[float, typer.Option(help="Confidence level of the statement.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Test whether one model is proved better than another, on rows that neither was trained on."""
    from assay.cli import models

    with _messages():
        models.compare(first, second, source, confidence, as_json)


@app.command()
def plan(
    error: Annotated[
        float | None,
        typer.Option(help="Error above the training error; prints the rows needed.", show_default=False),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Number of rows; prints the error guaranteed.", show_default=False)
    ] = None,
    confidence: Annotated[str, typer.Option(help="Confidence level of the statement.")] = "0.95",
    vc: Annotated[int | None, typer.Option(help="VC dimension of the hypothesis space.", show_default=False)] = None,
    size: Annotated[
        int | None, typer.Option(help="Number of hypotheses of a finite space.", show_default=False)
    ] = None,
    learner: Annotated[
        str, typer.Option(help="The hypothesis space of a learner; needs --features.", show_default=False)
    ] = "",
    features: Annotated[int | None, typer.Option(help="Number of features.", show_default=False)] = None,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 2,
    leaves: Annotated[int | None, typer.Option(help="Maximum number of leaves of a tree.", show_default=False)] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="Margin, relative to the norm of the longest row.", show_default=False),
    ] = None,
    kept: Annotated[
        int | None, typer.Option(help="Size of the compression set, such as the support vectors.", show_default=False)
    ] = None,
    training_error: Annotated[float, typer.Option(help="Expected training error.")] = 0.0,
    excess: Annotated[
        bool, typer.Option("--excess", help="Measure --error from the best hypothesis of the space.")
    ] = False,
    holdout_width: Annotated[
        float | None,
        typer.Option(help="Largest distance of the bound from the hold-out error.", show_default=False),
    ] = None,
    holdout_error: Annotated[float, typer.Option(help="Expected hold-out error.")] = 0.0,
    candidates: Annotated[int, typer.Option(help="Number of models compared on the same hold-out set.")] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(help="A .png, .svg or .pdf file: the bounds against the rows.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Compute how many rows a guarantee needs, or what a number of rows guarantees, by each theorem."""
    from assay.cli import planning

    with _messages():
        named = planning.Named(vc, size, learner, features, classes, leaves)
        training = planning.Training(error, rows, training_error, excess)
        holdout = planning.Holdout(holdout_width, holdout_error, candidates)
        planning.plan(planning.subject(named, margin, kept), training, holdout, confidence, plot, as_json)


@app.command()
def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List every learner: model, strategy, algorithm, guarantee."""
    from assay.cli import listing

    listing.methods(as_json)


@app.command()
def studio(
    source: Annotated[
        str,
        typer.Argument(help="A file, or a bundled table, to start with.", show_default=False),
    ] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's need a password.")
    ] = "127.0.0.1",
    folder: Annotated[
        Path | None, _option("Folder for tables, studies and models; by default in the user's data folder.")
    ] = None,
) -> None:
    """Run studies in a browser, on this machine."""
    with _messages():
        try:
            from assay.studio.app import serve as serve_studio
        except ModuleNotFoundError as error:
            raise ImportError(f"the studio needs {error.name}: pip install 'assay[studio]'.") from None
        serve_studio(source, host, port, browser, folder)


@app.command()
def card(
    model: ModelFile,
    out: Annotated[Path | None, _option("A .md or .html file; printed as Markdown if left out.")] = None,
) -> None:
    """Write a model card: data, bounds, assumptions, how to verify; intended use is left to fill in."""
    from assay.cli import models

    with _messages():
        models.card(model, out)


@app.command()
def export(
    model: ModelFile,
    to: Annotated[str, typer.Option(help="onnx (a graph; extra onnx), or python (source, no dependencies).")] = "onnx",
    out: Annotated[Path | None, _option("The file to write; by default the model's name with .onnx or .py.")] = None,
) -> None:
    """Write the model as an ONNX graph or as Python source, encoding of the table included."""
    from assay.cli import models

    with _messages():
        models.export_model(model, out, to)


@app.command()
def serve(
    model: ModelFile,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's need a token in ASSAY_SERVE_TOKEN.")
    ] = "127.0.0.1",
    alarm: Annotated[float, typer.Option(help="Probability of a false alarm.")] = 0.01,
    state: Annotated[Path | None, _option("File that keeps the outcomes over a restart.")] = None,
    memory: Annotated[
        int, typer.Option(min=64, help="Megabytes that requests may take together, beside the model.")
    ] = 1024,
) -> None:
    """Serve predictions over HTTP, and monitor the certified bound as outcomes arrive."""
    with _messages():
        from assay.cli.predicting import open_model

        try:
            from assay.serve import server
        except ModuleNotFoundError as error:
            raise ImportError(f"serving needs {error.name}: pip install 'assay[serve]'.") from None
        server.serve(*open_model(model), host, port, alarm, state, memory * 2**20)


@app.command()
def warmup(
    every: Annotated[bool, typer.Option("--all", help="Those of every learner too; takes minutes.")] = False,
) -> None:
    """Compile the loops of assay learn once, so that first fits are fast."""
    from assay.cli import listing

    with _messages():
        listing.warmup(every)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


@contextmanager
def _messages() -> Iterator[Any]:
    """Turn an error that the user can do something about into one line and exit code 2."""
    try:
        yield
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; there is nobody to tell
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        typer.echo("assay: stopped.", err=True)
        raise typer.Exit(130) from None
    except typer.Exit:
        raise
    except Exception as error:
        typer.echo(f"assay: {_said(error)}", err=True)
        known = isinstance(error, (ValueError, OSError, ImportError, MemoryError))
        raise typer.Exit(2 if known else 4) from None


def _said(error: Exception) -> str:
    """Return an error in one line; if it is none that a user can do something about, with its place in the code."""
    from assay.messages import of_error, render
    from assay.text import shown

    if isinstance(error, (ValueError, OSError, ImportError)):
        return shown(render(of_error(error), place="terminal"))
    if isinstance(error, MemoryError):
        return shown(f"there is not enough memory. {error}".rstrip())
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    kind, text = type(error).__name__, " ".join(str(error).split())[:500]
    return shown(f"this should not have happened; please report it with the command: {kind} in {where}: {text}")
