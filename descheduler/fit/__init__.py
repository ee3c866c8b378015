"""Would kube-scheduler put this pod on that node?   Pure: one predicate for each of its filters, every "no" named."""

from descheduler.fit.fitter import Fitter
from descheduler.fit.misfit import FitCode, Misfit

__all__ = ["FitCode", "Fitter", "Misfit"]
