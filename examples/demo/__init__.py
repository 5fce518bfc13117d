"""The flights of 2013 through zeroxide into Spark, and the answer back over zeroxide.

    publishers, one per airport          Spark                        this terminal
    PUSH ── flights as lines ──▶ PULL, one partition each
                                 by carrier and airport, by hour
                                          PUB ── the answer ──▶ SUB ─▶ table, picture, check
    PUSH ── progress, counters ────────────────────────────────▶ PULL ─▶ live view

``python -m examples.demo`` runs it and ends by itself. `flights` reads the data and computes
the expected answer without Spark, `publisher` and `pipeline` are the processes, `view` and `picture` show the outcome.
"""
