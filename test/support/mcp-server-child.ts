// A tool server as a program of its own, made with the protocol's own library: what a person would
// configure. Each tool does one thing that a test looks at.

import { spawn } from 'node:child_process';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const text = (words: string) => ({ content: [{ type: 'text' as const, text: words }] });

const server = new McpServer({ name: 'test', version: '1.0.0' });

if (process.argv.includes('calendar')) {
  const events = [{ id: 1, title: 'dentist' }];
  const annotations = { readOnlyHint: true };
  server.registerTool('list_events', { description: 'Lists the events.', annotations }, () =>
    text(JSON.stringify(events)),
  );
  server.registerTool(
    'delete_event',
    {
      description: 'Deletes an event.',
      inputSchema: { id: z.number() },
      annotations: { destructiveHint: true },
    },
    ({ id }) => text(`deleted ${id}`),
  );
}

server.registerTool(
  'add',
  {
    description: 'Adds\u202E two \u200Bnumbers.',
    inputSchema: { a: z.number(), b: z.number().describe('the other\u2066 one') },
    annotations: { readOnlyHint: true },
  },
  ({ a, b }) => text(String(a + b)),
);
server.registerTool('env', { description: 'Its environment.' }, () =>
  text(JSON.stringify(process.env)),
);
server.registerTool('fail', { description: 'Fails.' }, () => ({
  ...text('no such customer'),
  isError: true,
}));
server.registerTool('draw', { description: 'Draws.' }, () => ({
  content: [{ type: 'image', data: PIXEL, mimeType: 'text/html' }],
}));
server.registerTool('family', { description: 'Starts a child that stays.' }, () => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  return text(JSON.stringify([process.pid, child.pid]));
});
server.registerTool('die', { description: 'Ends.' }, () => process.exit(3));
server.registerTool('grow', { description: 'Gets a tool more.' }, () => {
  server.registerTool('grown', { description: 'Came later.' }, () => text('grown'));
  return text('more');
});
server.registerTool('hang', { description: 'Never answers.' }, () => new Promise<never>(() => {}));

await server.connect(new StdioServerTransport());
