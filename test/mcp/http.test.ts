import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { closed, portOf } from '../support/listening.ts';
import { createMcpRig } from './mcp-rig.ts';

type Answer = (
  response: import('node:http').ServerResponse,
  body: { id?: unknown; method?: string },
) => boolean;

/** The protocol's own server on a port of this machine; `trouble` may answer in its place. */
async function serve() {
  const state: {
    trouble: Answer;
    seen: string[];
    sessions: Map<string, StreamableHTTPServerTransport>;
  } = {
    trouble: () => false,
    seen: [],
    sessions: new Map(),
  };
  const open = async () => {
    const server = new McpServer({ name: 'remote', version: '1' });
    server.registerTool(
      'greet',
      { description: 'Greets.', inputSchema: { name: z.string() } },
      ({ name }) => ({
        content: [{ type: 'text', text: `hello ${name}` }],
      }),
    );
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void state.sessions.set(id, transport),
    });
    await server.connect(transport as never);
    return transport;
  };
  const http = createServer(async (request, response) => {
    state.seen.push(`${request.method} ${request.headers.authorization ?? ''}`);
    const text = Buffer.concat(await Array.fromAsync(request)).toString();
    const body = text === '' ? {} : JSON.parse(text);
    if (state.trouble(response, body)) return;
    const id = String(request.headers['mcp-session-id'] ?? '');
    const known = state.sessions.get(id);
    if (known === undefined && body.method !== 'initialize') {
      response.writeHead(404).end();
      return;
    }
    await (known ?? (await open())).handleRequest(request, response, body);
  });
  const port = await portOf(http);
  const stop = () => closed(http);
  onTestFinished(stop);
  return { ...state, state, stop, port, url: `http://127.0.0.1:${port}/mcp` };
}

const jsonStream = { 'content-type': 'text/event-stream' };

test('a server at an address: called with its login, found again when it forgot us, left alone when it is hostile', async () => {
  const server = await serve();
  const rig = await createMcpRig({
    remote: { url: server.url, headers: { Authorization: 'Bearer t0ken' } },
  });
  await rig.reaches('remote', 'connected');
  expect(await rig.call('mcp_remote_greet', { name: 'Ann' })).toMatchObject({
    status: 'ok',
    isForeign: true,
    text: expect.stringContaining('> hello Ann'),
  });
  expect(server.seen.every((line) => line.endsWith('Bearer t0ken'))).toBe(true);

  const during = async (trouble: Answer) => {
    server.state.trouble = (response, body) =>
      body.method === 'tools/call' && trouble(response, body);
    const outcome = await rig.call('mcp_remote_greet', { name: 'Bob' });
    server.state.trouble = () => false;
    return outcome;
  };
  const endless = (type: string, start: string) =>
    during((response) => {
      response.writeHead(200, { 'content-type': type });
      response.write(start);
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(1_000_000)));
      };
      response.on('drain', more);
      more();
      return true;
    });
  expect(await endless('application/json', '')).toMatchObject({
    failure: 'execution',
    text: expect.stringContaining('larger than 8,000,000 bytes'),
  });
  expect(
    await during((response, { id }) => {
      response.writeHead(200, jsonStream);
      const right = JSON.stringify({
        jsonrpc: '2.0',
        id,
        result: { content: [{ type: 'text', text: 'streamed' }] },
      });
      response.end(`: ping\n\nevent: message\ndata: ${right}\n\n`);
      return true;
    }),
  ).toMatchObject({ status: 'ok', text: expect.stringContaining('streamed') });
  for (const start of ['data: ', undefined]) {
    const cut = during((response) => {
      response.writeHead(200, jsonStream);
      if (start === undefined) response.end(': nothing\n\n');
      else response.end(start + 'x'.repeat(9_000_000));
      return true;
    });
    const later = async () => {
      await rig.clock.advance(1000);
      return Promise.race([cut, undefined]);
    };
    await expect.poll(later, { interval: 20, timeout: 45_000 }).toMatchObject({
      status: 'failed',
      text: expect.stringContaining('it may or may not have been done'),
    });
    expect(rig.stateOf('remote')).toBe('connected');
  }
  expect(
    await during((response) => {
      response.writeHead(302, { location: 'http://127.0.0.1:1/elsewhere' }).end();
      return true;
    }),
  ).toMatchObject({ status: 'failed' });
  expect(
    await during((response) => {
      response.writeHead(403).end('no');
      return true;
    }),
  ).toMatchObject({ failure: 'permission' });
  expect(server.seen.join('\n')).not.toContain('elsewhere');

  // It forgot the session: the call fails, and the next one finds a new session.
  server.sessions.clear();
  expect(await rig.call('mcp_remote_greet', { name: 'Cy' })).toMatchObject({ status: 'failed' });
  const waiting = expect.poll(
    async () => {
      await rig.clock.advance(1000);
      return (
        rig.stateOf('remote') === 'connected' &&
        (await rig.call('mcp_remote_greet', { name: 'Di' })).text
      );
    },
    { interval: 20, timeout: 45_000 },
  );
  await waiting.toMatch(/hello Di/);
});

test('a name that leads into a private network is not followed, unless the owner says so', async () => {
  const server = await serve();
  const url = `http://tools.example.org:${server.port}/mcp`;
  const rig = await createMcpRig(
    {
      trap: { url: url.replace('http:', 'https:') },
      ours: { url, privateNetwork: true },
    },
    {},
    async () => ['127.0.0.1'],
  );
  await rig.reaches('ours', 'connected');
  await rig.reaches('trap', 'failed');
  expect(rig.reason('trap')).toContain('private network');
  expect((await rig.call('mcp_ours_greet', { name: 'Eve' })).text).toContain('hello Eve');
});
