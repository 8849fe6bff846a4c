"""Linear models in the space of a kernel: f(x) = sum_i beta_i kappa(x_i, x) + b, learnt through beta.

By the representer theorem no other function of the space does better on the training rows at the same norm. Kernel
ridge regression and support vector machines have rooms of their own.
"""

from assay.kernel_model._logistic import KernelLogisticRegression
from assay.kernel_model._perceptron import Kernelized, KernelPerceptron

__all__ = ["KernelLogisticRegression", "KernelPerceptron", "Kernelized"]
