"""What the studio's child process can be asked to do. Each task imports what it needs when it runs."""

from typing import Any

from assay.studio.child import Tell


def look(tell: Tell, **arguments: Any) -> Any:
    """Return the summary of a table."""
    from assay.studio.tasks.trying import look as do

    return do(**arguments)


def learn(tell: Tell, **arguments: Any) -> Any:
    """Run a study; its model and report go to files."""
    from assay.studio.tasks.learning import learn as do

    return do(tell, **arguments)


def verify(tell: Tell, **arguments: Any) -> Any:
    """Check a model's certificate again."""
    from assay.studio.tasks.learning import verify as do

    return do(**arguments)


def compare(tell: Tell, **arguments: Any) -> Any:
    """Compare two models on rows that neither was fitted to."""
    from assay.studio.tasks.learning import compare as do

    return do(**arguments)


def predict(tell: Tell, **arguments: Any) -> Any:
    """Predict one row that a person typed, and say what would change the prediction."""
    from assay.studio.tasks.trying import predict as do

    return do(**arguments)


def plan(tell: Tell, **arguments: Any) -> Any:
    """Return rows for an error and errors for rows."""
    from assay.studio.tasks.learning import plan as do

    return do(**arguments)


def steps(tell: Tell, **arguments: Any) -> Any:
    """Return an algorithm's steps on two columns."""
    from assay.studio.tasks.stepping import steps as do

    return do(**arguments)


def methods(tell: Tell, **arguments: Any) -> Any:
    """Return the cards of learners, or the page of one."""
    from assay.studio.tasks.learning import methods as do

    return do(**arguments)
