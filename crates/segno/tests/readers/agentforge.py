"""Reads .agentforge/sessions the way AgentForge's document says. Written from the document alone; needs PyYAML."""
import os
from datetime import datetime

import yaml

# The same in C where it is there: a hundred looks a second are more than the other one can do.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
STATES = ["active", "paused", "completed", "aborted"]


def when(value):
    """As the origin reads them: texts for datetime.fromisoformat, in UTC without an offset, compared with utcnow()."""
    assert isinstance(value, str), f"{value!r} is no text, so fromisoformat fails with it"
    moment = datetime.fromisoformat(value)
    assert moment.tzinfo is None, f"{value} has an offset, so it cannot be compared with utcnow()"
    return moment


def load(folder, session):
    with open(os.path.join(folder, session, "session.yaml"), encoding="utf-8") as file:
        data = yaml.load(file, Loader=LOADER)
    assert data["session_id"] == session
    assert data["state"] in STATES, data["state"]
    assert data["attempt_number"] >= 1
    assert when(data["created_at"]) <= when(data["updated_at"])
    assert data["completed_at"] is None or data["state"] in ("completed", "aborted")
    assert data["completed_at"] is None or when(data["completed_at"]) >= when(data["created_at"])
    budget = data["token_budget"]
    assert budget["total_budget"] > 0 and budget["tokens_used"] >= 0
    for artifact in data["artifacts"]:
        assert artifact["artifact_type"] in ("created", "modified")
        when(artifact["timestamp"])
    assert data["history"], "history is never empty"
    for entry in data["history"]:
        assert entry["action"]
        when(entry["timestamp"])
    return data


def check(folder):
    """None if there is no session yet; otherwise the last session, after every check of each."""
    last = None
    for session in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if os.path.exists(os.path.join(folder, session, "session.yaml")):
            last = load(folder, session)
    return last
