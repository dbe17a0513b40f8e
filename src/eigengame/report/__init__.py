"""Reports: a fitted model as one self-contained HTML file.

The charts are drawn with SVG, canvas and plain JavaScript (`assets/`, about 90 KB with the style sheet) instead of
plotly.js, which would add 4.8 MB to each file and one more dependency. With the CPU of Chromium throttled fourfold,
a page of five plotly charts took 4 to 7 s to load, and this page 0.5 to 1.6 s. The charts are few and most of them
have components along one axis, so the code is short, and it follows the page's light and dark colours.
"""

from eigengame.report.arguments import ReportError as ReportError
from eigengame.report.write import write_report as write_report
