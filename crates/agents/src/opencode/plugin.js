// Tells a command what happens in this run, and refuses the calls that it refuses.
import { spawn, spawnSync } from "node:child_process";

// No hook may hang the agent. Milliseconds.
const TIMEOUT = 10000;
const EVENTS = ["session.created", "session.idle", "session.error", "session.compacted"];
const options = { timeout: TIMEOUT, killSignal: "SIGKILL" };
const parents = new Map();
// What was said, by message, and the messages that were told of.
const texts = new Map();
const told = new Set();

// It was set to keep this program from waiting for a network that is not there; the agent's tools shall not have it.
if (!WATCHING) delete process.env.npm_config_fetch_retries;

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

// One answer of the model, when it is whole: what was said, and what it used.
function answered(info) {
  const { input, output, reasoning, cache = {} } = info.tokens ?? {};
  const said = [...(texts.get(info.id)?.values() ?? [])].filter((text) => text.trim());
  texts.delete(info.id);
  return {
    message_id: info.id,
    texts: said,
    model: info.modelID,
    tokens: { input, output, reasoning, cache_read: cache.read, cache_write: cache.write },
    cost: info.cost,
  };
}

export const Hooks = async ({ directory }) => {
  // A run that has a driver has a plug-in of its own.
  if (WATCHING && process.env.SEGNO_RUN) return {};
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
      if (WATCHING && type === "session.status" && properties.status?.type === "retry") {
        const { attempt, message, next } = properties.status;
        const rest = { attempt, error: message, delay_ms: Math.max(0, next - Date.now()) };
        return tell(payload(type, properties.sessionID, rest));
      }
      const part = properties.part;
      if (WATCHING && type === "message.part.updated" && part?.type === "text" && part.time?.end) {
        if (!texts.has(part.messageID)) texts.set(part.messageID, new Map());
        texts.get(part.messageID).set(part.id, part.text);
      }
      // The output of a run that has a driver tells what its own answers used, and nothing of those of sub-agents.
      const untold = WATCHING || parents.has(info.sessionID);
      if (untold && type === "message.updated" && info.role === "assistant" && info.time?.completed) {
        if (told.has(info.id)) return;
        told.add(info.id);
        return tell(payload("message.completed", info.sessionID, answered(info)));
      }
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
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text);
      const answer = await ask(payload("chat.message", sessionID, { prompt: prompt.join("\n") }));
      const context = answer?.hookSpecificOutput?.additionalContext;
      const last = parts.at(-1);
      // What the model is to know comes after what the person typed, and is shown to nobody else.
      if (context && last) parts.push({ ...last, id: `${last.id}0`, type: "text", text: context, synthetic: true });
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
