"""A callback of fits, as scikit-learn calls them, for tests of interruptions."""


class Interrupt:
    """A callback that presses Ctrl-C, or asks to stop, at the end of one iteration."""

    def __init__(self, at, error=KeyboardInterrupt):
        self.at, self.error, self.seen = at, error, 0

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.parent is None:
            return False
        self.seen += 1
        if self.seen == self.at and self.error is not None:
            raise self.error
        return self.seen == self.at
