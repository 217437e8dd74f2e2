#!/usr/bin/env node
// Starts the program of the package that is made for this system. What stays installed (hooks, timers) names that
// program itself, so that Node.js is in nobody's way.
'use strict';

const { spawn } = require('node:child_process');

const name = `segno-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/segno`);
} catch {
  console.error(`error: there is no segno for ${process.platform} on ${process.arch} here`);
  console.error(`  hint: npm install ${name}   (it is left out by npm install --omit=optional)`);
  process.exit(12);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
// What is typed at a terminal reaches the program by itself; this process only waits for its end. A TERM is for this
// process alone, so it is handed on.
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGHUP']) process.on(signal, () => {});
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('error', (why) => {
  console.error(`error: cannot start ${program}: ${why.message}`);
  process.exit(12);
});
child.on('exit', (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
