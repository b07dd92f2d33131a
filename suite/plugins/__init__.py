"""Models, suites, papers and image sets that are none of ours."""
