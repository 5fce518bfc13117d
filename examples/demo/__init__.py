"""Sends the flights of 2013 through zeroxide and Spark, and counts each of them once.

    three producers            a collector            Spark                      a collector
    flights as lines,  ─────▶  their log,   ─────▶  delays by day,   ─────▶   the answer's log,
    acknowledged               on disk              event time                exactly once
                                                          │                         │
                                                          └──── PUB ────▶ SUB       │ check
                                                                    live view ◀─────┘

``python -m examples.demo`` runs it and ends by itself. On its way it kills Spark with SIGKILL,
starts it again from its checkpoint, and compares in the end what is on the answer's log with
what the data says. `flights` reads the data, `publisher` and `pipeline` are the processes,
`state` is what is known of the run; `view`, `web` and `page.html` show it, `picture` the outcome.
"""
