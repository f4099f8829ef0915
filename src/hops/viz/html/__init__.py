"""A report: one HTML file with everything about runs or results, to look at in any browser, without a server."""
