"""Reads a go-team registry the way its document says. Written from the document alone; standard library only."""
import glob
import json
import os
from datetime import datetime

STATUSES = ["active", "completed", "interrupted", "failed", "paused", "abandoned"]
TRIGGERS = ["auto", "action", "checkpoint", "breakpoint", "agent_switch"]


def load(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def when(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def find_session(registry, wanted):
    for session in registry["sessions"]:
        if session["id"] == wanted:
            return session
    raise AssertionError(f"Session not found: {wanted}")


def resume_error(session):
    if session["status"] == "completed":
        return "Session already completed"
    if session["status"] == "failed":
        return "Session failed and cannot be resumed"
    return None


def check(folder):
    """None if there is no registry yet; otherwise the entry of the last active session, after every check."""
    if not os.path.exists(os.path.join(folder, "sessions.json")):
        return None
    registry = load(folder, "sessions.json")
    assert registry["version"] == "1.0.0"
    for session in registry["sessions"]:
        assert session["status"] in STATUSES, session["status"]
        assert when(session["created_at"]) <= when(session["updated_at"])
        assert session["current_step"] >= 1
        progress = session["progress"]
        assert 0 <= progress["steps_completed"] <= progress["total_steps"]
        assert 0 <= progress["percentage"] <= 100
        assert session["resumable"] == (session["status"] in ("active", "interrupted", "paused"))
        assert resume_error(session) is None or not session["resumable"]
    last = find_session(registry, registry["last_active_session"])
    own = os.path.join(folder, last["id"])
    manifest = load(own, "manifest.json")
    assert manifest["session_id"] == last["id"]
    for checkpoint in manifest["checkpoints"]:
        content = load(own, checkpoint["id"] + ".json")
        assert content["id"] == checkpoint["id"] and content["session_id"] == last["id"]
        assert content["checksum"].startswith("sha256:")
    live = load(own, "state.json")
    assert live["session_id"] == last["id"] and live["save_trigger"] in TRIGGERS, live["save_trigger"]
    assert isinstance(live["context"]["pending_tasks"], list)
    assert isinstance(live["state"]["metrics"], dict)
    assert live["recovery_point"]["actions_since_checkpoint"] >= 0
    if os.path.exists(os.path.join(own, "recovery.json")):
        recovery = load(own, "recovery.json")
        assert recovery["interrupt_reason"] in ("timeout", "crash", "disconnect", "error")
        kinds = [option["type"] for option in recovery["recovery_options"]]
        assert recovery["recommended"] in kinds
        assert all(kind in ("checkpoint", "live_state", "fresh_start") for kind in kinds)
    assert not glob.glob(os.path.join(own, "*.tmp"))
    return last
