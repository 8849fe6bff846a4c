"""What the certificate of latent Dirichlet allocation says: the bound of the fit, its way there, and new documents."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from assay.claims.claim import Claim, NotApplicable
from assay.data.blocks import Block
from assay.decomposition._topics import log_densities
from assay.decomposition._topics_data import Documents, Prior, plain_factors, topic_bound, word_factors
from assay.guarantees.evidence import Density
from assay.guarantees.ledger import FIT_NOT_KEPT
from assay.messages import Message
from assay.optim.duality import outward
from assay.scan import Rows

_MOST_WORK = 3e7  # entries x topics x steps that are worth making again
_AGREE = 1e-5  # two runs that end farther apart were near a saddle


def facts(model: Any, rows: Rows) -> Iterator[Claim | NotApplicable]:
    """Yield the claims topics.bound about a fitted model on the documents it was fitted to."""
    documents = model._documents(rows.X if hasattr(rows, "X") else np.concatenate([b.X for b in rows.blocks()]))
    if not documents.total > 0:
        yield NotApplicable("topics.bound", Message("why.no-words"))
        return
    found = log_densities(documents, word_factors(model.components_), model.doc_topic_prior_).sum()
    center = float(found + topic_bound(model.components_, model.topic_word_prior_)) / documents.total
    slack = 1e-8 * (1 + abs(center) + model.components_.size / documents.total)
    yield Claim("topics.bound", outward(slack), params={"center": center})
    yield _monotone(model, documents, rows)


def _monotone(model: Any, documents: Documents, rows: Rows) -> Claim | NotApplicable:
    """Return that no step of the batch method lowered the bound; the run is made again from nearly the same start."""
    if model.method != "variational" or model.learning_method != "batch":
        return NotApplicable("topics.monotone", Message("why.batch-only"))
    if model._from_file or model.start_ is None:
        return NotApplicable("topics.monotone", FIT_NOT_KEPT)
    steps = model.n_iter_
    if not steps:
        return NotApplicable("topics.monotone", Message("why.no-step"))
    work = (len(documents.words) + len(documents)) * model.n_components * steps * model.max_doc_update_iter
    if work > _MOST_WORK:
        return NotApplicable("topics.monotone", Message("why.documents-cost", steps=steps))
    again, fall = _again(model, documents, steps)
    distance = float(np.max(np.abs(again / model.components_ - 1)))
    if not distance < _AGREE:
        return NotApplicable("topics.monotone", Message("why.saddle"))
    params = {
        "steps": int(steps),
        "distance": outward(100 * distance + 1e-6),
        "doc_steps": int(model.max_doc_update_iter),
        "doc_tol": float(model.mean_change_tol),
    }
    value = outward(fall + 1e-8 * (1 + model.components_.size / documents.total))
    return Claim("topics.monotone", value, params=params, witness={"start": model.start_})


def _again(model: Any, documents: Documents, steps: int) -> tuple[np.ndarray, float]:
    """Return the topics of a run from a start that differs by less than anybody can tell, and the largest fall."""
    other = clone(model)
    other.doc_topic_prior_, other.topic_word_prior_ = model.doc_topic_prior_, model.topic_word_prior_
    moved = 1 + 1e-12 * np.cos(np.arange(model.start_.size)).reshape(model.start_.shape)
    other.components_, other.n_iter_, other.n_batch_iter_ = model.start_ * moved, 0, 1
    log = _Values()
    other.set_params(max_iter=steps, evaluate_every=-1, verbose=0)._run_batch(documents, log)
    return other.components_, max(0.0, float(np.max(np.diff(log.values), initial=0.0)))


class _Values:
    """A log that keeps the objective of each step."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def step(self, objective: float, violation: float, **fitted: Any) -> bool:
        self.values.append(objective)
        return False


def density(model: Any) -> Density:
    """Return ln p of documents, from below, as evidence."""
    return Density(_of_block, (model.topics_, model.doc_topic_prior_))


def _of_block(block: Block, topics: np.ndarray, alpha: Prior) -> tuple[np.ndarray, np.ndarray]:
    documents = Documents.of(block.X, 1)
    values = log_densities(documents, plain_factors(topics), alpha)
    sizes = np.asarray(block.X.sum(axis=1)).ravel()
    return values, 1e-9 * (1 + np.abs(values) + sizes + len(topics))
