"""Reports of an audit: JSON, HTML and certificate.

document     the report as one JSON object, and findings as files
page/        the report as one HTML file
certificate  a certificate of one exact version of an environment
details      places in the sources, and state changes and reasons of proven findings
"""
