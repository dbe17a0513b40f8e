"""The report: one HTML file to look at, to keep and to send, that needs nothing but a browser.

The charts are drawn by SVG, canvas and plain JavaScript of our own (`assets/`, some 70 KB with the style), not
by plotly.js. That is 4.8 MB in every file and an extra to install; in a Chromium slowed down fourfold, on a
busy machine, a page of five plotly charts took 4 to 7 s to be complete and our whole page 0.5 to 1.6 s. The
charts here are few and most have components along one axis, so our own code is short, and it follows the
page's light and dark colours.
"""

from eigengame.report._check import ReportError as ReportError
from eigengame.report.write import write_report as write_report
