"""Monitoring of rows by a fitted model: Hotelling's T2, the squared prediction error, and control limits."""

from eigengame.monitoring.limits import ControlLimits as ControlLimits
from eigengame.monitoring.result import Monitoring as Monitoring
