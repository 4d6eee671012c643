"""Reports of an audit: JSON, HTML and certificate.

document     the report as one JSON object, and findings as files
page/        the report as one HTML file
certificate  a certificate of one exact version of an environment
details      state changes and reasons of proven findings
places       file and line of the code that a finding is about
"""
