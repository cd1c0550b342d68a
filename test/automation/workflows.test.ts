// The files of workflows as they stand in a workspace: those that are shipped can be used, a change counts
// from the next time on, and one that is wrong says where.

import { cp, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { TurnInput } from '../../src/agent/agent.ts';
import type { AgentSettings } from '../../src/agent/settings.ts';
import type { Approval } from '../../src/features/approvals/approval-rows.ts';
import type { JobEnding } from '../../src/features/schedule/rules/job.ts';
import { fillPrompt, fillValue } from '../../src/features/workflows/rules/template.ts';
import {
  WORKFLOW_CHANNEL,
  type WorkflowRun,
  workflowChat,
  workflowRights,
  workflowSession,
} from '../../src/features/workflows/rules/workflow.ts';
import {
  runWorkflow,
  type WorkflowAgentDeps,
} from '../../src/features/workflows/workflow-agent.ts';
import { openWorkflowRows } from '../../src/features/workflows/workflow-rows.ts';
import {
  createWorkflowFiles,
  createWorkflowRuns,
  forgetRuns,
} from '../../src/features/workflows/workflow-runs.ts';
import { ALL_RIGHTS, type ToolAccess } from '../../src/kernel/access/rights.ts';
import { TurnCancelled, TurnInterrupted } from '../../src/kernel/bus/bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { messageId, turnId } from '../../src/kernel/message/ids.ts';
import type { InboundMessage } from '../../src/kernel/message/message.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { createGuardedFiles } from '../../src/lib/files/guarded-files.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import type { BoundCall, Toolbox } from '../../src/tools/tool.ts';
import { OWNER_RIGHTS } from '../gateway/approvals-rig.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { CHAT } from './rig.ts';

const TEMPLATE = join(import.meta.dirname, '../../workspace');
const SAY = 'description: x\nsteps: [{id: a, kind: tool, tool: time}]\n';

async function makeWorkspace() {
  const folder = await temporaryFolder();
  await cp(TEMPLATE, folder, { recursive: true });
  return { folder, files: createWorkflowFiles(createGuardedFiles(), () => folder) };
}

async function makeRuns(maxRunning = 2) {
  const { files, folder } = await makeWorkspace();
  await writeFile(join(folder, 'workflows/short.yml'), SAY);
  const clock = createMovableClock(0);
  const store = await openEmbeddedStore({ path: join(folder, 'state.db'), clock, log });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const rows = openWorkflowRows(createRows(store), (text) => text.replaceAll('hunter2', '***'));
  const accepted: InboundMessage[] = [];
  const ended: (readonly [string, JobEnding])[] = [];
  const runs = createWorkflowRuns({
    ...{ rows, files, clock, log },
    bus: {
      async accept(all) {
        accepted.push(...all.map(({ message }) => message));
        return all.map(() => 'accepted' as const);
      },
      cancel: async () => ({ running: false, withdrawn: 0, unsent: 0 }),
      send: async () => 'queued' as const,
    },
    jobEnded: async (job, _run, how) => void ended.push([job, how]),
    settings: () => ({ enabled: true, maxRunning, steps: 9, minutes: 9, tokens: 9000, money: 0 }),
  });
  const starter = {
    home: { kind: 'chat', session: 'chat:1' as never, chat: CHAT },
    ...{ rights: OWNER_RIGHTS, isTainted: false, person: OWNER_TURN, payingChat: CHAT, payer: {} },
  } as const;
  const wish = { workflow: 'short', input: {}, key: 'k', starter };
  return { runs, rows, accepted, ended, wish, starter, clock, folder };
}

/** Whatever is called is this tool. */
function scriptedToolbox(
  access: ToolAccess,
  run: Extract<BoundCall, { readonly kind: 'ready' }>['run'],
): Toolbox {
  return {
    offered: () => ({ specs: [], guidance: () => '' }),
    missing: () => [],
    bind: (name, json) => ({
      ...{
        kind: 'ready',
        name,
        access,
        reach: 'outside',
        isPosted: false,
        url: undefined,
        arguments: json,
        detail: '',
      },
      accessIn: () => access,
      seal: async () => undefined,
      run,
    }),
  };
}

type AgentParts = Pick<Awaited<ReturnType<typeof makeRuns>>, 'runs' | 'rows' | 'clock'> & {
  readonly toolbox: Toolbox;
};

const never = () => {
  throw new Error('no model is asked');
};

const agentDeps = ({ runs, rows, clock, toolbox }: AgentParts): WorkflowAgentDeps => ({
  ...{ rows, clock, log, models: never, costOf: () => 0, toolbox: () => toolbox },
  spending: { reserve: never, modelFor: never },
  ...{ voting: never, votes: { note: never } },
  approvals: { get: async () => undefined },
  settings: () => ({ workspace: '/' }) as AgentSettings,
  most: () => ({ steps: 9, minutes: 9, tokens: 9000 }),
  say: async () => undefined,
  end: (run, how, result) => runs.end(run, how, result),
  tell: (id) => runs.tell(id),
});

function turnOf({ id }: WorkflowRun): TurnInput {
  const message = { id: messageId('m'), chat: workflowChat(id) } as InboundMessage;
  return {
    ...{ turnId: turnId(`${workflowSession(id)}#1`), session: workflowSession(id) },
    ...{ chat: workflowChat(id), person: OWNER_TURN, rights: OWNER_RIGHTS },
    messages: [{ seq: 1, message, rights: OWNER_RIGHTS, isForeign: false }],
    settings: { thinkingBudget: 0 },
    ...{ steer: async () => [], say: never, judge: never, post: never, ask: never },
  };
}

it('ships workflows that can be used as they are', async () => {
  const { files } = await makeWorkspace();
  const all = [...(await files.workflows()), ...(await files.capabilities())];
  expect(all.filter(({ kind }) => kind === 'broken')).toEqual([]);
  expect(all.length).toBeGreaterThanOrEqual(19);
});

/** What the steps of the shipped workflows may have given. */
const GIVEN = {
  'meeting-minutes': {
    input: { notes: 'notes.txt', file: 'notes/minutes.md' },
    minutes: {
      title: 'Board',
      topics: [{ topic: 'Budget', points: ['up by 2 %'] }],
      decisions: ['Hire Ada'],
      questions: [],
    },
    tasks: {
      items: [
        { what: 'Call Bob', who: 'Ada', due: 'Friday' },
        { what: 'Book a room', who: '', due: '' },
      ],
    },
  },
  'triage-inbox': {
    input: { groups: ['needs an answer', 'advertising'] },
    sorted: {
      entries: [
        { entry: 'Offer', group: 'advertising', reason: 'a sale' },
        { entry: 'Rent', group: 'needs an answer', reason: 'asks for a date' },
      ],
    },
  },
  'check-text': {
    input: { text: 'a.md', sources: 'b.md', file: 'notes/findings.md' },
    checked: {
      claims: [
        { claim: 'It is blue', verdict: 'contradicted', quote: 'it is red' },
        { claim: 'It is old', verdict: 'supported', quote: 'built in 1910' },
      ],
    },
    corrected: { changes: [{ before: 'teh', after: 'the' }] },
  },
};

it.each([
  [
    'meeting-minutes',
    '- [ ] Call Bob (Ada, Friday)\n- [ ] Book a room\n',
    'Board: 2 tasks. Written to notes/minutes.md.\n- Call Bob (Ada)\n- Book a room',
  ],
  [
    'triage-inbox',
    undefined,
    '**needs an answer**\n- Rent: asks for a date\n\n**advertising**\n- Offer: a sale\n\n',
  ],
  [
    'check-text',
    '- **contradicted**: It is blue ("it is red")\n',
    '1 of 2 claims are supported. Written to notes/findings.md.',
  ],
] as const)('writes with the loops of the shipped workflow %s', async (name, content, result) => {
  const { files } = await makeWorkspace();
  const found = await files.workflow(name);
  if (found?.kind !== 'valid') throw new Error('it cannot be used');
  const scope = { values: GIVEN[name], foreign: [] };
  const { workflow } = found.value;
  expect(fillPrompt(workflow.result ?? '', scope, () => '')).toMatchObject({ value: result });
  const written = workflow.steps.find(({ id }) => id === 'written');
  const filled = fillValue(written?.kind === 'tool' ? written.arguments : {}, scope);
  expect(JSON.stringify(filled)).toContain(JSON.stringify(content ?? '').slice(1, -1));
});

it('reads files anew each time, follows no link, and tells what is wrong with one', async () => {
  const { folder, files } = await makeWorkspace();
  const path = join(folder, 'workflows/new.yaml');
  expect(await files.workflow('new')).toBeUndefined();
  await writeFile(path, SAY);
  expect(await files.workflow('new')).toMatchObject({ kind: 'valid' });
  await writeFile(path, `${SAY}result: "{{ b.text }}"\n`);
  expect(await files.workflow('new')).toMatchObject({
    problem: 'workflows/new.yaml: result: {{ b.text }} is set by nothing; there is input, a',
  });
  await writeFile(path, 'steps: [');
  expect(await files.workflow('new')).toMatchObject({
    kind: 'broken',
    problem: expect.stringMatching(/^workflows\/new.yaml: .*line 1/),
  });
  await writeFile(join(folder, 'secret.yaml'), SAY);
  await symlink(join(folder, 'secret.yaml'), join(folder, 'workflows/linked.yaml'));
  expect((await files.workflow('linked'))?.kind).not.toBe('valid');
  await writeFile(join(folder, 'capabilities/outline.yaml'), 'description: x\n');
  expect(await files.workflow('research')).toMatchObject({
    problem: expect.stringMatching(
      /^capabilities\/outline\.yaml: prompt: it is missing; write what/,
    ),
  });
});

it('begins a wish once, no more at a time than may be, and keeps no secret', async () => {
  const { runs, rows, accepted, wish, starter } = await makeRuns();
  const one = await runs.start(wish);
  expect((await runs.start(wish)).id).toBe(one.id);
  expect(new Set(accepted.map(({ id }) => id)).size).toBe(1);
  expect(accepted[0]).toMatchObject({
    chat: { channel: WORKFLOW_CHANNEL, chat: one.id },
    sender: { rights: workflowRights(starter) },
  });
  expect(workflowRights(starter)).toMatchObject({
    schedule: 'never',
    say: 'never',
    execute: 'ask',
  });
  await runs.start({ ...wish, key: 'two' });
  await expect(runs.start({ ...wish, key: 'three' })).rejects.toThrow(/2 workflows are running/);
  await runs.end(one, 'failed', 'the password is hunter2');
  expect((await rows.runs.get(one.id))?.result).toBe('the password is ***');
  await runs.start({ ...wish, key: 'three' });
  await expect(runs.start({ ...wish, workflow: 'shor' })).rejects.toThrow(
    /There is no workflow "shor"; there is check-text, inbox-note, meeting-minutes, research, short, triage/,
  );
});

it('never does again what may have been done when the process died, and does again what only looks', async () => {
  const { runs, rows, wish, clock } = await makeRuns();
  for (const access of ['write', 'read'] as const) {
    const run = await runs.start({ ...wish, key: access });
    const process = new AbortController();
    let began = 0;
    const toolbox = scriptedToolbox(access, async ({ signal }) => {
      began += 1;
      if (began === 1) process.abort(new TurnInterrupted('shutdown'));
      return signal.aborted
        ? { status: 'failed', text: 'broken off' }
        : { status: 'ok', text: 'x' };
    });
    const work = (signal: AbortSignal) =>
      Array.fromAsync(runWorkflow(agentDeps({ runs, rows, clock, toolbox }), turnOf(run), signal));
    await expect(work(process.signal)).rejects.toThrow('shutdown');
    await work(new AbortController().signal);
    expect(began).toBe(access === 'write' ? 1 : 2);
    const ended = await rows.runs.get(run.id);
    expect(ended?.status).toBe(access === 'write' ? 'failed' : 'done');
    if (access === 'write') expect(ended?.result).toMatch(/outcome unknown: the process stopped/);
    else expect(ended?.state).toMatchObject({ number: 1, steps: { a: { runs: 1, tries: 1 } } });
  }
});

it.each([
  ['running', /outcome unknown: the process stopped while the approved call ran/],
  ['refused', /an owner denied it/],
])('a call that waited for an owner and is found %s ends the run', async (kind, why) => {
  const { runs, rows, wish, clock } = await makeRuns();
  const run = await runs.start(wish);
  const toolbox = scriptedToolbox('execute', async () => ({ status: 'ok', text: 'done' }));
  const turn: TurnInput = {
    ...turnOf(run),
    judge: async () => ({ text: 'An owner is asked.', isWaiting: true }),
  };
  const { signal } = new AbortController();
  for (const state of [{ kind: 'open' }, { kind }]) {
    const approvals = { get: async () => ({ state }) as Approval };
    const deps = { ...agentDeps({ runs, rows, clock, toolbox }), approvals };
    await Array.fromAsync(runWorkflow(deps, turn, signal));
    if (state.kind === 'open') expect((await rows.runs.get(run.id))?.status).toBe('waiting');
  }
  expect(await rows.runs.get(run.id)).toMatchObject({
    status: 'failed',
    result: expect.stringMatching(why),
  });
});

it('ends when the time of all is over, however long a file wants, or when it is ended by hand', async () => {
  const { runs, rows, wish, clock, folder } = await makeRuns();
  await writeFile(join(folder, 'workflows/long.yaml'), `limits: {minutes: 60}\n${SAY}`);
  for (const [how, status, result] of [
    ['time', 'failed', 'its time limit (9 minutes) is reached'],
    ['hand', 'cancelled', 'stopped by a person'],
  ] as const) {
    const run = await runs.start({ ...wish, workflow: 'long', key: how });
    const turn = new AbortController();
    const begun = Promise.withResolvers<void>();
    const toolbox = scriptedToolbox('read', async ({ signal }) => {
      begun.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return { status: 'failed', text: 'broken off' };
    });
    const deps = agentDeps({ runs, rows, clock, toolbox });
    const over = Array.fromAsync(runWorkflow(deps, turnOf(run), turn.signal));
    await begun.promise;
    if (how === 'hand') turn.abort(new TurnCancelled());
    else await clock.advance(9 * 60_000);
    await over;
    expect(await rows.runs.get(run.id)).toMatchObject({ status, result });
  }
});

it('tries again what ran out of time only where it looks', async () => {
  const { runs, rows, wish, clock, folder } = await makeRuns();
  await writeFile(join(folder, 'workflows/slow.yaml'), SAY.replace('time}', 'time, retries: 2}'));
  for (const access of ['write', 'read'] as const) {
    const run = await runs.start({ ...wish, workflow: 'slow', key: access });
    let tries = 0;
    const toolbox = scriptedToolbox(access, async () => {
      tries += 1;
      return { status: 'failed', failure: 'timeout', text: 'too late' };
    });
    const { signal } = new AbortController();
    await Array.fromAsync(
      runWorkflow(agentDeps({ runs, rows, clock, toolbox }), turnOf(run), signal),
    );
    expect(tries).toBe(access === 'write' ? 1 : 3);
  }
});

const CAREFUL = `description: x
steps:
  - { id: page, kind: tool, tool: web_fetch, arguments: { url: "https://a.example" } }
  - { id: there, kind: tool, tool: web_fetch, arguments: { url: "{{ page.text }}" } }
  - { id: away, kind: tool, tool: web_fetch, arguments: { url: "{{ page.text }}?k=1" }, onFailure: continue }
  - { id: act, kind: tool, tool: exec, arguments: {} }
`;

it('asks an owner, once it has read untrusted content, before it acts or carries them away', async () => {
  const { runs, rows, wish, clock, folder } = await makeRuns();
  await writeFile(join(folder, 'workflows/careful.yaml'), CAREFUL);
  const run = await runs.start({ ...wish, workflow: 'careful', key: 'careful' });
  const page = `https://b.example/${'a1'.repeat(50)}`;
  const plain = scriptedToolbox('web', async () => ({ status: 'ok', text: page, isForeign: true }));
  const toolbox: Toolbox = {
    ...plain,
    bind(name, json) {
      const bound = plain.bind(name, json);
      if (bound.kind === 'refused') return bound;
      if (name === 'exec') return { ...bound, access: 'execute', accessIn: () => 'execute' };
      return { ...bound, url: JSON.parse(json).url };
    },
  };
  const asked: unknown[] = [];
  const turn: TurnInput = {
    ...turnOf(run),
    rights: ALL_RIGHTS,
    judge: async (question) => ({ text: `${asked.push(question)}`, isWaiting: true }),
  };
  const { signal } = new AbortController();
  await Array.fromAsync(runWorkflow(agentDeps({ runs, rows, clock, toolbox }), turn, signal));
  expect(asked).toMatchObject([
    { tool: 'web_fetch', isTainted: true, arguments: expect.stringContaining('?k=1') },
    { tool: 'exec', isTainted: true },
  ]);
});

it('tells its end once, to the chat or to the job, and forgets what holds certain words', async () => {
  const { runs, rows, accepted, ended, wish, starter } = await makeRuns();
  const run = await runs.start(wish);
  accepted.length = 0;
  expect(await forgetRuns(rows)(['chat:1'], (text) => text.includes('Paris'))).toBe(0);
  await runs.end(run, 'done', 'about Paris');
  await runs.end(run, 'failed', 'again');
  expect(await runs.cancel(run)).toBe(false);
  expect(accepted.map(({ text }) => text)).toEqual(['**short**\n\nabout Paris']);
  const home = { kind: 'job', job: 'j1' } as const;
  const ofJob = {
    ...wish,
    key: 'job',
    begunBy: messageId('cron/j1/1'),
    starter: { ...starter, home },
  };
  const job = await runs.start(ofJob);
  expect(accepted.at(-1)?.id).toBe('cron/j1/1');
  expect(await runs.cancel(job)).toBe(true);
  await runs.tell(job.id);
  expect(ended).toEqual([['j1', 'stopped']]);
  expect(await forgetRuns(rows)(['chat:2'], () => true)).toBe(0);
  expect(await forgetRuns(rows)(['chat:1'], (text) => text.includes('Paris'))).toBe(1);
  expect(await rows.runs.get(run.id)).toBeUndefined();
});
