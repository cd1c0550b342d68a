import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createCron } from '../../src/features/schedule/cron-tool.ts';
import { createSpawn } from '../../src/features/subagents/spawn.ts';
import { ALL_RIGHTS, NO_RIGHTS } from '../../src/kernel/access/rights.ts';
import { ToolError } from '../../src/kernel/message/errors.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { Clock } from '../../src/lib/time/clock.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { noSubagents } from '../support/no-subagents.ts';
import { createWorkspace } from './workspace-fixture.ts';

const toolboxDeps = (clock: Clock) => ({
  settings: () => ({ disabled: [], maxResultChars: 500, timeoutMs: 1000 }),
  clock,
  log: silentLogger,
});

type Counting = Tool<{ n: number }>;

async function createToolboxOf(run: Counting['run'], more: Partial<Counting> = {}) {
  const { context, clock, stop } = await createWorkspace();
  const tool: Tool<{ n: number }> = {
    name: 'count',
    description: 'Counts.',
    access: 'read',
    input: z.object({ n: z.number() }),
    describe: ({ n }) => String(n),
    run,
    ...more,
  };
  const toolbox = createToolbox({ ...toolboxDeps(clock), tools: () => [tool as Tool] });
  return { tool: tool as Tool, toolbox, context, clock, stop };
}

async function createOneTool(run: Counting['run'], more: Partial<Counting> = {}) {
  const made = await createToolboxOf(run, more);
  const bound = made.toolbox.bind('count', '{"n": 1}');
  if (bound.kind === 'refused') throw new TypeError(bound.outcome.text);
  return { ...made, bound };
}

describe('the toolbox', () => {
  test('offers every tool with a JSON Schema, and none that is switched off', async () => {
    const { toolbox } = await createWorkspace();
    const { specs, guidance } = toolbox.offered(ALL_RIGHTS);
    expect(specs.map((spec) => spec.name)).toEqual([
      'read_file',
      'read_document',
      'read_result',
      'write_file',
      'edit_file',
      'list_dir',
      'remember',
      'recall',
      'session_search',
      'read_earlier',
      'expand',
      'read_skill',
      'message',
      'ask_user',
      'plan',
      'checkpoint',
      'backtrack',
      'send_file',
      'web_fetch',
      'search_files',
      'search',
      'time',
      'cron',
      'spawn',
      'send_email',
      'workflow',
    ]);
    expect(specs[0]?.schema).toMatchObject({ type: 'object', required: ['path'] });
    const all = guidance(() => true);
    expect(all).toContain('### read_file');
    expect(all).toContain('### recall');
    expect(guidance((name) => name !== 'recall')).not.toContain('### recall');
    const without = await createWorkspace({ disabled: ['remember', 'recall'] });
    const left = without.toolbox.offered(ALL_RIGHTS);
    expect(left.specs.map((spec) => spec.name)).not.toContain('recall');
    expect(left.guidance(() => true)).not.toContain('recall\n');
    expect(await without.call('recall', { query: 'x' })).toMatchObject({ status: 'failed' });
  });

  test('offers a turn only what it may have done', async () => {
    const { toolbox } = await createWorkspace();
    expect(toolbox.offered(NO_RIGHTS).specs).toEqual([]);
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

  test('says of arguments that end in the middle that they were too much for one answer', async () => {
    const { call } = await createWorkspace();
    for (const input of ['{"path": ', '{"path": "a", "content": "so f', '{"path":"a"']) {
      const { text } = await call('write_file', input);
      expect(text).toContain('the length limit');
    }
    const { text } = await call('write_file', "{'path': 'a'}");
    expect(text).not.toContain('the length limit');
    const deep = `{"path":"a","content":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    expect((await call('write_file', deep)).text).toContain('nested too deep');
  });

  test('success is a field: a result that reads like an error is still one', async () => {
    const { bound, context } = await createOneTool(async () => 'Error: this is the content');
    expect(await bound.run(context)).toEqual({ status: 'ok', text: 'Error: this is the content' });
  });

  test('a failure is told with its kind', async () => {
    const { call } = await createWorkspace();
    const failure = async (name: string, input: unknown) => (await call(name, input)).failure;
    expect(await failure('read_file', { path: 'missing.txt' })).toBe('not_found');
    expect(await failure('read_file', { path: '../config.json' })).toBe('blocked');
    expect(await failure('read_file', {})).toBe('invalid_arguments');
    expect(await failure('fly', {})).toBe('unknown_tool');
    expect(await failure('read_file', { path: 'hello.txt' })).toBeUndefined();
  });

  test('a call that only looks is tried once more after a passing failure, no other is', async () => {
    const tries = async (access: Tool['access'], isTransient: boolean, failures: number) => {
      let runs = 0;
      const { bound, context, clock } = await createOneTool(
        async () => {
          runs += 1;
          if (runs > failures) return 'done';
          throw new ToolError('timeout', 'no answer', { isTransient });
        },
        { access },
      );
      const outcome = bound.run(context);
      await clock.advance(500);
      return { runs, status: (await outcome).status };
    };
    expect(await tries('read', true, 1)).toEqual({ runs: 2, status: 'ok' });
    expect(await tries('web', true, 9)).toEqual({ runs: 2, status: 'failed' });
    expect(await tries('read', false, 1)).toEqual({ runs: 1, status: 'failed' });
    for (const access of ['write', 'send', 'execute'] as const) {
      expect(await tries(access, true, 1)).toEqual({ runs: 1, status: 'failed' });
    }
  });

  test('a tool that cannot work does not exist, and why not is known', async () => {
    let hasKey = false;
    const { toolbox, context } = await createToolboxOf(async () => 'found', {
      isAvailable: () => hasKey,
      unavailableBecause: () => 'it has no key',
    });
    expect(toolbox.offered(ALL_RIGHTS).specs).toEqual([]);
    expect(toolbox.missing()).toEqual([{ name: 'count', reason: 'it has no key' }]);
    expect(toolbox.bind('count', '{"n": 1}')).toMatchObject({
      kind: 'refused',
      outcome: { failure: 'unknown_tool', text: expect.stringContaining('it has no key') },
    });
    hasKey = true;
    expect(toolbox.offered(ALL_RIGHTS).specs).toHaveLength(1);
    expect(toolbox.missing()).toEqual([]);
    const bound = toolbox.bind('count', '{"n": 1}');
    expect(bound.kind === 'ready' && (await bound.run(context)).status).toBe('ok');
  });

  test('tools come and go, and those that stay are told to the model in the same words', async () => {
    const { tool, clock } = await createOneTool(async () => 'done');
    const tools = [tool];
    const toolbox = createToolbox({ ...toolboxDeps(clock), tools: () => tools });
    const [before] = toolbox.offered(ALL_RIGHTS).specs;
    tools.push({ ...tool, name: 'mcp_files_search' });
    const after = toolbox.offered(ALL_RIGHTS).specs;
    expect(after.map(({ name }) => name)).toEqual(['count', 'mcp_files_search']);
    expect(after[0]).toBe(before);
    tools.pop();
    expect(toolbox.bind('mcp_files_search', '{}').kind).toBe('refused');
  });

  test('a name may stand for arguments as well, and a real name always wins', async () => {
    const ran: number[] = [];
    const { tool, clock, context } = await createOneTool(async ({ n }) => String(ran.push(n)), {
      aliases: ['tally', { name: 'count_to_ten', implies: { n: 10 } }],
      parameterAliases: { n: ['number', 'value'] },
    });
    const other = { ...tool, name: 'tally', aliases: [], run: async () => 'the real one' };
    const toolbox = createToolbox({ ...toolboxDeps(clock), tools: () => [tool, other] });
    const call = async (name: string, input: unknown) => {
      const bound = toolbox.bind(name, JSON.stringify(input));
      return bound.kind === 'ready' ? (await bound.run(context)).text : bound.outcome.text;
    };
    await call('CountToTen', {});
    await call('count_to_ten', { value: '3' });
    await call('count', { number: 4 });
    expect(ran).toEqual([10, 3, 4]);
    expect(await call('tally', { n: 1 })).toBe('the real one');
    const cron = createCron({} as never) as Tool;
    const jobs = createToolbox({ ...toolboxDeps(clock), tools: () => [cron] });
    const every = jobs.bind('schedule', '{"action":"add","message":"tea","every_seconds":3600}');
    expect(every).toMatchObject({ arguments: expect.stringContaining('"every":"3600"') });
    for (const bad of [
      { action: 'add', text: 'tea' },
      { action: 'add', text: 'tea', every: '1' },
      { action: 'add', text: 'tea', cron: '0 8 * * *', time_zone: 'Mars/Olympus' },
      { action: 'add', at: '08:00' },
      { action: 'run' },
    ]) {
      const bound = jobs.bind('cron', JSON.stringify(bad));
      // No owner is asked to allow it.
      const seal = bound.kind === 'ready' ? await bound.seal(context) : undefined;
      expect(seal).toMatchObject({ status: 'failed', failure: 'invalid_arguments' });
    }
    const spawn = createSpawn(noSubagents()) as Tool;
    const helpers = createToolbox({ ...toolboxDeps(clock), tools: () => [spawn] });
    for (const action of ['wait', 'check', 'list', 'cancel']) {
      const meant = { name: 'spawn', arguments: JSON.stringify({ action, id: 'h1' }) };
      expect(helpers.bind(action, '{"task_id":"h1"}')).toMatchObject(meant);
    }
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
