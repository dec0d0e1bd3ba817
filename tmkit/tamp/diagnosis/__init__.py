"""Answers: from failures to what is learned, and to what the user is told when there is no plan.

While a run lasts, ``causes`` turns the frames of a failure into the facts of a constraint, which the task planner
understands. When it ends without a plan, ``diagnosing`` reads the log: who was in the way, how far poses were out of
reach, which facts of the goal exclude each other; ``remedies`` plans again without one thing or another, to find what
would help; ``explanation`` says all of it in words.
"""
