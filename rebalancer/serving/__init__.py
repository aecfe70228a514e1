"""HTTP(S) for probes and scrapers: health and metrics, in a thread that does not delay the cycles.

Nothing here knows what is healthy or what is counted: pages come from functions that the caller passes in.  The server
accepts only requests without a body, and waits 10 seconds for a client, so a slow client costs one file descriptor for
that time and nothing else.
"""
