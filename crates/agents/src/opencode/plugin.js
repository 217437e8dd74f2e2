// Tells a command what happens in this run, and refuses the calls that it refuses.
import { spawn, spawnSync } from "node:child_process";

// No hook may hang the agent. Milliseconds.
const TIMEOUT = 10000;
const EVENTS = ["session.created", "session.idle", "session.error", "session.compacted"];
const options = { timeout: TIMEOUT, killSignal: "SIGKILL" };
const parents = new Map();

// It was set to keep this program from waiting for a network that is not there; the agent's tools shall not have it.
delete process.env.npm_config_fetch_retries;

function ask(payload) {
  return new Promise((resolve) => {
    let text = "";
    const end = () => {
      try {
        resolve(JSON.parse(text));
      } catch {
        resolve(undefined);
      }
    };
    // What the hook leaves running may hold its output open.
    setTimeout(end, TIMEOUT + 1000).unref();
    const child = spawn(COMMAND[0], COMMAND.slice(1), { ...options, stdio: ["pipe", "pipe", "ignore"] });
    child.on("error", end);
    child.on("close", end);
    child.stdout.on("data", (data) => (text += data));
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(payload));
  });
}

// The program does not wait for those who hear of events, and ends soon after the last one.
function tell(payload) {
  spawnSync(COMMAND[0], COMMAND.slice(1), {
    ...options,
    input: JSON.stringify(payload),
    stdio: ["pipe", "ignore", "ignore"],
  });
}

function refused(answer) {
  const decision = answer?.hookSpecificOutput;
  return decision?.permissionDecision === "deny" ? (decision.permissionDecisionReason ?? "") : undefined;
}

export const Hooks = async ({ directory }) => {
  const payload = (event, session, rest) => ({
    hook_event_name: event,
    session_id: session,
    parent_id: parents.get(session),
    cwd: directory,
    ...rest,
  });
  return {
    event: async ({ event }) => {
      const { type, properties = {} } = event;
      const info = properties.info ?? {};
      if (type === "session.created" && info.parentID) parents.set(info.id, info.parentID);
      // It waits for its provider without a word, for hours if that is what it was told.
      if (type === "session.status" && properties.status?.type === "retry" && !process.stderr.isTTY) {
        const { attempt, message, next } = properties.status;
        process.stderr.write(`\n${WAITS} ${JSON.stringify({ attempt, message, next })}\n`);
      }
      const part = properties.part;
      if (type === "message.part.updated" && part?.type === "tool" && part.state?.status === "error") {
        const { tool, callID, state, sessionID } = part;
        const rest = { tool_name: tool, call_id: callID, tool_input: state.input, error: state.error };
        tell(payload("tool.execute.error", sessionID, rest));
      } else if (EVENTS.includes(type)) {
        const { error } = properties;
        const session = properties.sessionID ?? info.id;
        tell(payload(type, session, { version: info.version, error: error?.data?.message ?? error?.name }));
      }
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      const texts = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text);
      await ask(payload("chat.message", sessionID, { prompt: texts.join("\n") }));
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const rest = { tool_name: tool, call_id: callID, tool_input: args };
      const why = refused(await ask(payload("tool.execute.before", sessionID, rest)));
      if (why !== undefined) throw new Error(REFUSED + why);
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      const { output, metadata = {} } = result ?? {};
      await ask(
        payload("tool.execute.after", sessionID, {
          tool_name: tool,
          call_id: callID,
          tool_input: args,
          tool_output: output,
          metadata: { exit: metadata.exit, filepath: metadata.filepath, exists: metadata.exists },
        }),
      );
    },
  };
};
