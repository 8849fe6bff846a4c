"""The commands and their options. Each imports what it needs when it runs, so that `assay --help` is quick.

Exit codes: 0 done, 1 verification failed, 2 bad usage or bad data, 3 rows that look otherwise
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
    target: Annotated[str, _option("The column to predict; bundled tables have one of their own.")] = "",
    time: Annotated[float | None, _option("Seconds for everything; at most 60 if left out.")] = None,
    trials: Annotated[int | None, _option("Judge so many settings instead: the same bits on every machine.")] = None,
    metric: Annotated[str, _option("error, balanced, logloss, auc, brier or f1; mae, rmse or r2 for numbers.")] = "",
    cost: Annotated[Path | None, _option("A CSV file: in row i, column j the cost of deciding j for i.")] = None,
    confidence: Annotated[str, typer.Option(help="How sure the statements about new data must be.")] = "0.95",
    holdout: Annotated[
        float | None, typer.Option(help="Share of the rows kept aside to judge models; a quarter, less of many.")
    ] = None,
    certify: Annotated[str, typer.Option(help="holdout: bounds from rows kept aside. folds: every row is fitted.")] = (
        "holdout"
    ),
    folds: Annotated[int, typer.Option(min=2, help="With --certify folds: how many models, which then vote.")] = 3,
    learners: Annotated[str, _option("Learners to compare, with commas; all for every suitable one.")] = "",
    exclude: Annotated[str, _option("Learners to leave out, with commas.", "--exclude", "--without")] = "",
    force: Annotated[bool, typer.Option("--force", help="Try named learners although there are many rows.")] = False,
    workers: Annotated[int | None, _option("Processes that fit side by side; all cores if left out.", min=0)] = None,
    group: Annotated[str, _option("Rows with one value of this column stay together.")] = "",
    time_column: Annotated[str, _option("The newest rows by this column are held out.", "--time-column")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split, the settings and the learners.")] = 0,
    clip: Annotated[float | None, _option("Regression: errors count at most this; from the rows if left out.")] = None,
    task: Annotated[str, _option("classify or regress; from the target if left out.")] = "",
    nominal: Annotated[str, _option("Columns whose numbers are only names, with commas.")] = "",
    ordered: Annotated[list[str] | None, _option("An ordered column and its levels: size=small,medium,large.")] = None,
    drop: Annotated[str, _option("Columns to leave out, with commas.")] = "",
    out: Annotated[Path, typer.Option(help="The model file to write.")] = Path("model.assay"),
    report: Annotated[Path, typer.Option(help="The report to write.")] = Path("report.html"),
    log: Annotated[Path | None, _option("A file for a line per event.")] = None,
    looks: Annotated[
        int,
        typer.Option(min=0, help="Split the hold-out rows in advance: each of so many studies opens its own part."),
    ] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep scores in OUT.scores; the same command then goes on from them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but what went wrong.")] = False,
) -> None:
    """Choose, fit and certify the best model of a table in the time given; write the model and a report.

    Ctrl-C once ends the search and keeps what is done; twice quits.
    """
    from assay.fork_server import LEARNERS, started_early

    with nullcontext() if workers == 0 else started_early(*LEARNERS), _messages():
        from assay.cli import learning

        options = learning.Options(
            time, trials, metric or None, learning.cost_matrix(cost), confidence, holdout, certify, folds,
            _words(learners), _words(exclude), group or None, time_column or None, seed, clip, task or None, force,
            workers, looks or None,
        )  # fmt: skip
        levels = dict(learning.parse_ordered(one) for one in ordered or ())
        reading = learning.Reading(_words(nominal), levels, _words(drop))
        learning.learn(source, target, options, reading, learning.Output(out, report, as_json, quiet, log, resume))


@app.command()
def verify(
    model: ModelFile,
    source: Annotated[str, typer.Argument(help="The table that the model was learnt from.", show_default=False)] = "",
    audit: Annotated[
        bool, typer.Option("--audit", help="Print the files and lines that the verdict rests on, and stop.")
    ] = False,
    limit: Annotated[
        float | None,
        typer.Option(help="Seconds; claims that are not judged by then cannot be checked.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check the certificate of a model against the table it was learnt from."""
    from assay.cli import checking

    with _messages():
        if audit:
            checking.audit(model)
            return
        if not source:
            raise ValueError("name the table that the model was learnt from: assay verify model.assay data.csv.")
        holds = checking.verify(model, source, limit, as_json)
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
            help="CSV: write labels as they are, or with ' before those that a spreadsheet would run as formulas.",
        ),
    ] = False,
    proba: Annotated[bool, typer.Option("--proba", help="Write the probability of each class too.")] = False,
    sets: Annotated[
        float | None,
        typer.Option(help="Classes: write sets that hold the true one in this share of rows.", show_default=False),
    ] = None,
    intervals: Annotated[
        float | None,
        typer.Option(help="Numbers: write intervals that hold the true one in this share of rows.", show_default=False),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Two classes: say the second from this probability on.", show_default=False),
    ] = None,
    keep: Annotated[str, _option("Columns of the input to write too, with commas, or all.", "--keep", "--id")] = "",
    fail_on_drift: Annotated[
        bool, typer.Option("--fail-on-drift", help="Exit with 3 if the rows do not look like the old ones.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: predictions, drift, notes.")] = False,
) -> None:
    """Predict the target of each row of a table, and say if its rows do not look like the old ones.

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
    confidence: Annotated[float, typer.Option(help="How sure the statement must be.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")] = False,
) -> None:
    """Say whether one model is proved better than another, on rows that neither was fitted to."""
    from assay.cli import comparing

    with _messages():
        comparing.compare(first, second, source, confidence, as_json)


@app.command()
def plan(
    error: Annotated[
        float | None,
        typer.Option(help="Error wanted beyond the training error; gives the rows.", show_default=False),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows at hand; gives the error guaranteed.", show_default=False)
    ] = None,
    confidence: Annotated[str, typer.Option(help="How sure the statement must be.")] = "0.95",
    vc: Annotated[int | None, typer.Option(help="The class by its VC dimension.", show_default=False)] = None,
    size: Annotated[int | None, typer.Option(help="The class by its number of hypotheses.", show_default=False)] = None,
    learner: Annotated[str, typer.Option(help="The class of a learner; needs --features.", show_default=False)] = "",
    features: Annotated[int | None, typer.Option(help="Columns that the learner will see.", show_default=False)] = None,
    classes: Annotated[int, typer.Option(help="Classes that the learner will tell apart.")] = 2,
    leaves: Annotated[int | None, typer.Option(help="Leaves that a tree may have.", show_default=False)] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="Distance of rows from the border, as a share of the longest row.", show_default=False),
    ] = None,
    kept: Annotated[
        int | None, typer.Option(help="Rows that rebuild the model, such as support vectors.", show_default=False)
    ] = None,
    training_error: Annotated[float, typer.Option(help="Share of training rows expected wrong.")] = 0.0,
    excess: Annotated[bool, typer.Option("--excess", help="Count --error from the best error of the class.")] = False,
    holdout_width: Annotated[
        float | None,
        typer.Option(help="How far the bound may lie above the hold-out error.", show_default=False),
    ] = None,
    holdout_error: Annotated[float, typer.Option(help="Share of hold-out rows expected wrong.")] = 0.0,
    candidates: Annotated[int, typer.Option(help="Models compared on the same hold-out rows.")] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(help="A .png, .svg or .pdf file: the bounds against the rows.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Tell how many rows a guarantee needs, or what a number of rows guarantees, by each theorem."""
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
        typer.Argument(help="A file, or a bundled table, to begin with.", show_default=False),
    ] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
    host: Annotated[
        str, typer.Option(help="Another address than this machine's own; asks for a password.")
    ] = "127.0.0.1",
) -> None:
    """Do the main job in a browser, on this machine."""
    with _messages():
        try:
            from assay.studio import server
        except ModuleNotFoundError as error:
            raise ImportError(f"the studio needs {error.name}: pip install 'assay[studio]'.") from None
        server.serve(source, host, port, browser)


@app.command()
def card(
    model: ModelFile,
    out: Annotated[Path | None, _option("A .md or .html file; printed as Markdown if left out.")] = None,
) -> None:
    """Write the model card: data, bounds, assumptions, how to verify, with blanks for what only people know."""
    from assay.cli import cards

    with _messages():
        cards.card(model, out)


@app.command()
def export(
    model: ModelFile,
    out: Annotated[Path | None, _option("The file to write; the model file's name with .onnx if left out.")] = None,
) -> None:
    """Write the model as an ONNX graph, the reading of the table's columns included (extra onnx)."""
    from assay.cli import exporting

    with _messages():
        exporting.export(model, out)


@app.command()
def serve(
    model: ModelFile,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Another address than this machine's own; needs a token in ASSAY_SERVE_TOKEN.")
    ] = "127.0.0.1",
    alarm: Annotated[float, typer.Option(help="Chance of saying that a bound is broken that is kept.")] = 0.01,
    state: Annotated[Path | None, _option("A file that keeps what outcomes have shown, for the next start.")] = None,
) -> None:
    """Answer requests for predictions over HTTP, and watch whether what comes true keeps the certified bound."""
    with _messages():
        from assay.cli.predicting import open_model

        try:
            from assay.serve import server
        except ModuleNotFoundError as error:
            raise ImportError(f"serving needs {error.name}: pip install 'assay[serve]'.") from None
        server.serve(*open_model(model), host, port, alarm, state)


@app.command()
def warmup() -> None:
    """Compile the usual loops once, so that first fits are quick."""
    from assay.cli import listing

    with _messages():
        listing.warmup()


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
