"""Report as one HTML file without network access, external scripts or a framework.

overview     the page: verdict, findings, coverage, failure rate
findings     one section per finding, with its trajectories side by side
pictures     inline SVG
markup       elements, with all foreign text escaped
style.css, script.js
"""

from .overview import page as page
