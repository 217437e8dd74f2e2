"""Reads ~/.ultra-create/sessions the way its document's interfaces say. Standard library only."""
import gzip
import json
import os
from datetime import datetime


def when(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def validate(state):
    assert state["status"] in ("active", "paused", "completed", "crashed"), state["status"]
    assert when(state["created_at"]) <= when(state["updated_at"])
    assert set(state["project"]) >= {"path", "name", "type"}
    assert 0 <= state["context"]["progress_percent"] <= 100
    assert isinstance(state["agents"]["active"], list) and isinstance(state["agents"]["states"], dict)
    for call in state["tools"]["history"] + state["tools"]["pending"]:
        assert set(call) >= {"tool", "input", "output", "timestamp"}, call
    assert isinstance(state["decisions"]["tree"], list) and state["decisions"]["current_branch"]
    assert isinstance(state["memory"]["local_cache"], dict)
    assert all(isinstance(state["files"][name], list) for name in ("created", "modified", "deleted"))
    assert state["errors"]["count"] >= len(state["errors"]["log"]) or state["errors"]["log"]
    for checkpoint in state["checkpoints"]:
        assert checkpoint["id"].startswith("checkpoint_")
        assert set(checkpoint) >= {"id", "reason", "timestamp", "tool_count", "progress"}
    return state


def check(folder):
    """None if there is no session yet; otherwise the present session, after every check."""
    plain = os.path.join(folder, "current-session.json")
    if not os.path.exists(plain):
        return None
    with open(plain, encoding="utf-8") as file:
        state = validate(json.load(file))
    with gzip.open(plain + ".gz", "rt", encoding="utf-8") as file:
        validate(json.load(file))
    return state
