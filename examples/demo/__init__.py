"""Sends the flights of 2013 through zeroxide and Spark, and counts each of them once.

    three producers            a collector            Spark                      a collector
    flights as lines,  ─────▶  their log,   ─────▶  delays by day,   ─────▶   the answer's log,
    acknowledged               on disk              event time                exactly once
                                                          │                         │
                                                          └──── PUB ────▶ SUB       │ check
                                                                    live view ◀─────┘

``python -m examples.demo`` runs it and ends by itself. It kills Spark with SIGKILL, restarts it
from its checkpoint, and finally compares the result log with the data. `flights` reads the data,
`publisher` and `pipeline` are the processes,
`state` holds the state of the run, which `view`, `web` and `page.html` show. `picture` draws the result.
"""
