// Lets a client that speaks MCP over HTTP talk to a server on standard input and output: mcp-bridge.mjs COMMAND [ARGUMENT…]
// Each `initialize` starts one server; the header mcp-session-id says which one is meant. Prints its address.
// For tests only: it knows what the conformance client sends, and nothing else.
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import http from "node:http";
import readline from "node:readline";

const [command, ...args] = process.argv.slice(2);
const servers = new Map();

function start() {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const server = { child, waiting: new Map() };
  readline.createInterface({ input: child.stdout }).on("line", (line) => {
    const message = JSON.parse(line);
    const answer = message.method === undefined && server.waiting.get(message.id);
    if (answer) {
      server.waiting.delete(message.id);
      answer(line);
    }
  });
  return server;
}

const allowed = (host) => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host ?? "");

http
  .createServer((request, response) => {
    const end = (status, body = "", headers = {}) => response.writeHead(status, headers).end(body);
    const origin = request.headers.origin;
    if (!allowed(request.headers.host) || (origin && !allowed(new URL(origin).host))) return end(403);
    const id = request.headers["mcp-session-id"];
    if (request.method === "DELETE") {
      servers.get(id)?.child.stdin.end();
      return end(servers.delete(id) ? 200 : 404);
    }
    if (request.method !== "POST") return end(405);
    let text = "";
    request.on("data", (piece) => (text += piece));
    request.on("end", () => {
      const message = JSON.parse(text);
      let session = id;
      if (message.method === "initialize" && !id) servers.set((session = randomUUID()), start());
      if (!session) servers.has("") || servers.set("", start());
      const server = servers.get(session ?? "");
      if (!server) return end(404);
      const headers = { "content-type": "application/json", ...(session && { "mcp-session-id": session }) };
      if (message.id === undefined || message.method === undefined) end(202);
      else server.waiting.set(message.id, (line) => end(200, line, headers));
      server.child.stdin.write(JSON.stringify(message) + "\n");
    });
  })
  .listen(0, "127.0.0.1", function () {
    console.log(`http://127.0.0.1:${this.address().port}/mcp`);
  });
