import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ALL_RIGHTS, NO_RIGHTS } from '../../src/core/rights.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { createWorkspace } from './workspace-fixture.ts';

async function createOneTool(run: Tool<{ n: number }>['run'], settings = {}) {
  const { context, clock, stop } = await createWorkspace();
  const tool: Tool<{ n: number }> = {
    name: 'count',
    description: 'Counts.',
    access: 'read',
    input: z.object({ n: z.number() }),
    describe: ({ n }) => String(n),
    run,
  };
  const toolbox = createToolbox({
    tools: () => [tool],
    settings: () => ({ disabled: [], maxResultChars: 500, timeoutMs: 1000, ...settings }),
    clock,
    log: silentLogger,
  });
  const bound = toolbox.bind('count', '{"n": 1}');
  if (bound.kind === 'refused') throw new TypeError(bound.outcome.text);
  return { bound, context, clock, stop };
}

describe('the toolbox', () => {
  test('offers every tool with a JSON Schema, and none that is switched off', async () => {
    const { toolbox } = await createWorkspace();
    const { specs, guidance } = toolbox.offered(ALL_RIGHTS);
    expect(specs.map((spec) => spec.name)).toEqual([
      'read_file',
      'read_document',
      'write_file',
      'edit_file',
      'list_dir',
      'remember',
      'recall',
      'message',
      'send_email',
      'send_file',
      'web_fetch',
      'time',
    ]);
    expect(specs[0]?.schema).toMatchObject({ type: 'object', required: ['path'] });
    expect(guidance).toContain('### read_file');
    const without = await createWorkspace({ disabled: ['remember', 'recall'] });
    const left = without.toolbox.offered(ALL_RIGHTS);
    expect(left.specs.map((spec) => spec.name)).not.toContain('recall');
    expect(left.guidance).not.toContain('recall\n');
    expect(await without.call('recall', { query: 'x' })).toMatchObject({ status: 'failed' });
  });

  test('offers a turn only what it may have done', async () => {
    const { toolbox } = await createWorkspace();
    expect(toolbox.offered(NO_RIGHTS)).toEqual({ specs: [], guidance: '' });
    const reader = toolbox.offered({ ...NO_RIGHTS, read: 'free', write: 'ask' });
    expect(reader.specs.map(({ name }) => name)).not.toContain('message');
    expect(reader.specs.map(({ name }) => name)).toContain('write_file');
  });

  test.each(['functions.read_file', 'READ_FILE', 'read-file', 'ReadFile', 'default_api:read_file'])(
    'knows a tool by the name %s',
    async (name) => {
      const { call } = await createWorkspace();
      expect(await call(name, { path: 'hello.txt' })).toMatchObject({ status: 'ok' });
    },
  );

  test.each(['rm_rf', '', '__proto__', 'constructor', 'toString'])(
    'answers the unknown tool %j with the names there are',
    async (name) => {
      const { call } = await createWorkspace();
      const outcome = await call(name, {});
      expect(outcome.status).toBe('failed');
      expect(outcome.text).toContain('unknown_tool');
      expect(outcome.text).toContain('list_dir');
    },
  );

  test('explains bad arguments with the shape that is right', async () => {
    const { call } = await createWorkspace();
    for (const input of ['{"path": ', '[1, 2]', '{}', '{"path": ""}', '42', 'null']) {
      const outcome = await call('write_file', input);
      expect(outcome.status).toBe('failed');
      expect(outcome.text).toContain('invalid_arguments');
      expect(outcome.text).toContain('"required":["path","content"]');
    }
  });

  test('success is a field: a result that reads like an error is still one', async () => {
    const { bound, context } = await createOneTool(async () => 'Error: this is the content');
    expect(await bound.run(context)).toEqual({ status: 'ok', text: 'Error: this is the content' });
  });

  test('a failure nobody expected is a result without its inner details', async () => {
    const { bound, context } = await createOneTool(async () => {
      throw new TypeError('connect to 10.0.0.1 with password hunter2');
    });
    const outcome = await bound.run(context);
    expect(outcome.status).toBe('failed');
    expect(outcome.text).not.toContain('hunter2');
  });

  test('a tool that never ends is left behind when its time is up', async () => {
    let wasTold = false;
    const { bound, context, clock } = await createOneTool(
      (_, { signal }) =>
        new Promise(() => signal.addEventListener('abort', () => (wasTold = true))),
    );
    const outcome = bound.run(context);
    await clock.advance(1000);
    expect(await outcome).toMatchObject({
      status: 'failed',
      text: expect.stringContaining('timeout'),
    });
    expect(wasTold).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test('a stopped turn ends a running tool and starts none', async () => {
    let runs = 0;
    const { bound, context, stop, clock } = await createOneTool(() => {
      runs += 1;
      return new Promise(() => {});
    });
    const outcome = bound.run(context);
    stop.abort();
    expect(await outcome).toMatchObject({ text: expect.stringContaining('cancelled') });
    expect(await bound.run(context)).toMatchObject({ status: 'failed' });
    expect(runs).toBe(1);
    expect(clock.pending).toBe(0);
  });

  test('a long result is cut and says so', async () => {
    const { bound, context } = await createOneTool(async () => 'x'.repeat(5000));
    const { text } = await bound.run(context);
    expect(text.length).toBeLessThanOrEqual(500);
    expect(text).toMatch(/\[truncated, [\d,]+ characters omitted: /);
  });
});
