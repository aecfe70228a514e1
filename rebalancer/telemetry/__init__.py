"""What a process tells about itself while it runs: metrics, traces, and the HTTP(S) server for probes and scrapers.

Nothing here knows what is healthy or decides about pods: pages come from functions that the caller passes in.  The
server accepts only requests without a body, and waits 10 seconds for a client, so a slow client costs one file
descriptor for that time and nothing else.
"""
