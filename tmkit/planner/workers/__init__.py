"""Workers: planning over several processes, with the answer that one process would give.

``portfolio`` tries several seeds and settings side by side, and takes the first *in order* that decides. How jobs run,
end and are ended is in ``worker_processes``; ``worker_main`` is what a worker does.
"""
