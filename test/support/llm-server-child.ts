// The model simulator as a child process, for benchmarks and crash tests: answers every call with
// `echo`, prints its address as one JSON line, and leaves when its parent closes stdin.
// Arguments: [latencyMs] [port].

import { echo, startLlmServer } from './llm-server.ts';

const [latency = '0', port = '0'] = process.argv.slice(2);
const latencyMs = Number(latency);
const server = await startLlmServer({
  respond: echo,
  record: false,
  port: Number(port),
  ...(latencyMs > 0 ? { latencyMs } : {}),
});
process.stdout.write(`${JSON.stringify({ url: server.url, openaiBase: server.openaiBase })}\n`);
process.stdin.resume().once('end', () => void server[Symbol.asyncDispose]());
