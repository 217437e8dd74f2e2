"""Reads a .prp-session folder the way the PRP session manager's document says, and checks what the document checks.

Written from the document alone. Standard library only.
"""
import json
import os
from datetime import datetime, timedelta, timezone

PHASES = ["RED", "GREEN", "REFACTOR", "DOCUMENT", "QA"]
STATUSES = ["running", "paused", "suspended", "completed", "halted", "aborted"]


def load(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def when(text):
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    assert moment.tzinfo is not None, f"no offset: {text}"
    assert moment <= datetime.now(timezone.utc) + timedelta(minutes=5), f"future timestamp: {text}"
    return moment


def validate_session(state, prp_file):
    for field in ["session_id", "prp_file", "started_at", "current_phase", "status"]:
        if field not in state:
            return False, f"Missing required field: {field}"
    if state["prp_file"] != prp_file:
        return False, f"PRP mismatch: session={state['prp_file']}, requested={prp_file}"
    if state["current_phase"] not in PHASES:
        return False, f"Invalid phase: {state['current_phase']}"
    if state["status"] not in ["running", "paused", "suspended"]:
        if state["status"] == "completed":
            return False, "Session already completed"
        if state["status"] == "halted":
            return False, "Session halted by Circuit Breaker"
        return False, f"Invalid status: {state['status']}"
    return True, ""


def status_blocks(text):
    blocks, block, parent = [], None, None
    for line in text.splitlines():
        if line == "---PRP_PHASE_STATUS---":
            block, parent = {}, None
        elif line == "---END_PRP_PHASE_STATUS---":
            blocks.append(block)
            block = None
        elif block is not None:
            name, _, value = line.strip().partition(":")
            if line.startswith("  - "):
                block.setdefault(parent, []) if not isinstance(block.get(parent), dict) else None
            elif line.startswith("  "):
                block[parent][name] = value.strip()
            elif value.strip() == "":
                parent = name
                block[name] = {}
            else:
                block[name] = value.strip()
    assert block is None, "a block without its end"
    return blocks


def check(folder):
    """None if there is no session yet; otherwise the main state, after every check."""
    if not os.path.exists(os.path.join(folder, "loop-state.json")):
        return None
    state = load(folder, "loop-state.json")
    ok, why = validate_session(state, state.get("prp_file"))
    assert ok or why in ("Session already completed", "Session halted by Circuit Breaker", "Invalid status: aborted"), why
    assert state["status"] in STATUSES
    assert when(state["started_at"]) <= when(state["last_activity"])
    assert 0 <= state["current_iteration"] <= 100
    assert all(phase in PHASES for phase in state["phases_completed"])
    assert len(state["error_history"]) <= 50
    for error in state["error_history"]:
        assert set(error) >= {"timestamp", "phase", "iteration", "error", "hash"}, error
        assert len(error["error"]) <= 500
        when(error["timestamp"])
    if state["status"] == "halted":
        assert state["halt_reason"]

    breaker = load(folder, "circuit-breaker.json")
    assert breaker["state"] in ("CLOSED", "HALF_OPEN", "OPEN")
    assert breaker["no_progress_count"] >= 0 and breaker["same_error_count"] >= 0
    assert isinstance(breaker["last_progress_metric"], dict) and isinstance(breaker["history"], list)
    if breaker["state"] == "OPEN":
        assert breaker["opened_at"] and breaker["open_reason"]

    metrics = load(folder, "metrics.json")
    assert metrics["current_phase"] in PHASES
    for phase, stand in metrics["phases"].items():
        assert phase in PHASES
        if stand is not None:
            assert ("current_metrics" in stand) != ("final_metrics" in stand), phase
            assert isinstance(stand["history"], list)

    limits = load(folder, "rate-limit.json")
    hourly = limits["hourly"]
    start, reset = when(hourly["window_start"]), datetime.fromisoformat(hourly["next_reset"].replace("Z", "+00:00"))
    assert start <= reset and reset - start == timedelta(hours=1)
    assert hourly["calls_made"] >= 0 and hourly["limit"] > 0
    assert set(limits["anthropic_5h"]) >= {"detected", "detected_at", "resume_at", "waiting"}

    gate = load(folder, "dual-gate.json")
    assert gate["can_exit"] in (True, False)
    assert not gate["can_exit"] or gate["gate_1"]["satisfied"]
    assert gate["gate_2"]["source"] in ("explicit_signal", "none")

    with open(os.path.join(folder, "phase-status.log"), encoding="utf-8") as file:
        blocks = status_blocks(file.read())
    assert blocks
    for block in blocks:
        assert block["PHASE"] in PHASES and block["STATUS"] in ("IN_PROGRESS", "BLOCKED", "COMPLETE")
        assert int(block["ITERATION"]) >= 1
        tests = {name: int(value) for name, value in block["TESTS"].items()}
        assert tests["PASSING"] + tests["FAILING"] + tests["SKIPPED"] == tests["TOTAL"]
        assert block["EXIT_SIGNAL"] in ("true", "false")
    return state
