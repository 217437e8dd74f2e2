"""poll.py FAMILY FOLDER STOP: reads the folder a hundred times a second until the file STOP is there.

Prints how often it looked and in which time, how often there was a session, whole, and the statuses it saw in order. Ends with 1 at the first check that does not hold.
"""
import importlib
import os
import sys
import time
import traceback

family, folder, stop = sys.argv[1:4]
reader = importlib.import_module(family)
looks = found = 0
seen = []
over = False
begun = due = time.monotonic()
while not over:
    over = os.path.exists(stop)
    looks += 1
    try:
        state = reader.check(folder)
    except Exception:
        print(f"look {looks} in {folder} failed after {seen}")
        traceback.print_exc(file=sys.stdout)
        sys.exit(1)
    if state is not None:
        found += 1
        status = state.get("status", state.get("state"))
        if not seen or seen[-1] != status:
            seen.append(status)
    # A look that took longer than its time is not made up for.
    due = max(due + 0.01, time.monotonic())
    time.sleep(max(0.0, due - time.monotonic()))
took = time.monotonic() - begun
print(f"looks {looks} in {took:.1f} s, {looks / took:.0f} a second, found {found}")
print(" ".join(seen))
