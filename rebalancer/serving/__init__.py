"""HTTP(S) for probes and scrapers: health and metrics, beside the cycles and never in their way.

Nothing here knows what is healthy or what is counted: pages come from functions that the caller brings.  The server
reads nothing but requests without a body, and gives each client seconds, so that a slow one costs a descriptor for as
long and nothing else.
"""
