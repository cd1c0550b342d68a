// Lossless compaction from outside: what nodes stand for is found again word by word, after hundreds of
// turns, a kill, a new file, forgetting, in this conversation and in no other.

import { expect, it } from 'vitest';
import { nodeId, nodesInView, rangeOfNode } from '../../src/agent/rules/context-marks.ts';
import { firstSeqOf, messageId, sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { forgetInSessions } from '../../src/kernel/sessions/forget.ts';
import { createExpand } from '../../src/tools/read-back.ts';
import { campaign } from '../support/campaign.ts';
import {
  breaksOff,
  calls,
  type ScriptedCall,
  type ScriptedRequest,
  says,
} from '../support/scripted-model.ts';
import { CHAT, createRig, SESSION } from './agent-rig.ts';

const PAYER = { chat: CHAT, sender: { kind: 'system', source: 'webhook' } } as const;
const TURNS = campaign({ short: 160, full: 300 });
const CHATTER = 'we saw a heron by the canal and it rained. '.repeat(6);
const LOSSLESS = {
  engine: 'lossless' as const,
  keepTokens: 400,
  summaryTokens: 300,
  lossless: { softPercent: 50, hardPercent: 85, keepMessages: 4 },
};

const isForNode = (request: ScriptedRequest) =>
  request.system[0]?.text.startsWith('You keep the notes') === true;
const shown = (request: ScriptedRequest | undefined) =>
  (request?.messages ?? [])
    .map((one) => `${one.text}${one.role === 'user' ? (one.note ?? '') : ''}`)
    .join('\n');

type Options = Parameters<typeof createRig>[0] & { readonly notes?: (record: string) => string };

type State = {
  notes: (record: string) => string;
  expanded: number;
  mayWait: Promise<void>;
  isDown: boolean;
  isAsked: () => void;
};

/** Knows what a request shows and nothing else; what it does not see it looks for behind a node. */
async function talking({ notes = () => 'They talked about the weather.', ...more }: Options = {}) {
  const settings = { maxContextTokens: 4000, maxTokens: 300 };
  const rig = await createRig({
    settings,
    compaction: LOSSLESS,
    expands: true,
    maxResultChars: 2500,
    ...more,
  });
  const knows: State = {
    notes,
    expanded: 0,
    mayWait: Promise.resolve(),
    isDown: false,
    isAsked: () => {},
  };
  const answer: ScriptedCall = async function* (request, signal) {
    if (isForNode(request)) {
      knows.isAsked();
      const ended = new Promise<void>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
      await Promise.race([knows.mayWait, ended]);
      return yield* knows.isDown
        ? breaksOff('', new Error('down'))(request, signal)
        : says(knows.notes(shown(request)))(request, signal);
    }
    const last = request.messages.findLast(({ role }) => role === 'user');
    const asked = /What is my locker word/.test(last?.text ?? '');
    const word = /my locker word is (\w+)/.exec(shown(request))?.[1];
    const node = /\[Node (t\d+-\d+)/.exec(shown(request))?.[1];
    if (!asked) return yield* says(`Noted, ${CHATTER}`)(request, signal);
    if (word !== undefined) return yield* says(`It is ${word}.`)(request, signal);
    if (node === undefined || request.messages.at(-1)?.role === 'tool') {
      return yield* says('I do not know.')(request, signal);
    }
    knows.expanded += 1;
    return yield* calls([{ name: 'lcm_expand', input: { node } }])(request, signal);
  };
  return Object.assign(rig, {
    knows,
    async say(seq: number, text: string, isForeign = false) {
      rig.model.script(...Array.from({ length: 40 }, () => answer));
      const input = rig.inputOf(seq, [text]);
      const messages = [{ ...input.messages[0], isForeign }] as const;
      const { outcome } = await rig.run({ ...input, messages });
      return outcome.kind === 'answered' ? outcome.answers.at(-1) : outcome.kind;
    },
    /** What goes on behind the last turn is over. */
    settled: () => rig.agent.compact(SESSION, PAYER, {}),
    nodes: async () => nodesInView(await rig.sessions.load(SESSION)),
  });
}

it(`answers after ${TURNS} turns what was said in turn 1, which stands in no summary, by expanding`, async () => {
  const rig = await talking();
  await rig.say(1, 'my locker word is velvet');
  for (let seq = 2; seq < TURNS; seq += 1) {
    await rig.say(seq, `reading ${seq} ${CHATTER}`);
    if (seq === 150) await rig.restart();
    // A new day begins a new file.
    if (seq % 100 === 0) await rig.clock.advance(24 * 3_600_000);
  }
  await rig.settled();
  const nodes = await rig.nodes();
  expect(nodes.length).toBeLessThanOrEqual(12);
  expect(nodes.some(({ level }) => level > 0)).toBe(true);
  expect(nodes[0]?.from).toBeLessThanOrEqual(1);
  for (const [index, { from }] of nodes.entries()) {
    expect(from).toBe(nodes[index - 1]?.before ?? from);
  }
  expect(nodes.map(({ text }) => text).join()).not.toContain('velvet');
  expect(await rig.say(TURNS, 'What is my locker word?')).toBe('It is velvet.');
  expect(rig.knows.expanded).toBe(1);
  const answering = rig.model.requests.filter((request) => !isForNode(request));
  const sizes = answering.map((request) => shown(request).length / 4);
  expect(Math.max(...sizes)).toBeLessThan(4000);
  await rig.restart();
  expect((await rig.nodes()).map(nodeId)).toEqual(nodes.map(nodeId));
  const inner = nodes.find(({ children }) => children !== undefined);
  const child = inner?.children?.at(-1) ?? '';
  const tool = createExpand({ sessions: rig.sessions, maxResultChars: () => 10_000 });
  const place = { session: SESSION, turnId: turnId(`${SESSION}#400`) } as never;
  expect(await tool.run({ node: nodeId(inner ?? { from: 0, before: 1 }) }, place)).toContain(child);
  expect(await tool.run({ node: child }, place)).toContain(`reading ${rangeOfNode(child)?.from} `);
  const report = await rig.agent.inspect(rig.inputOf(400, ['?']));
  expect(report.nodes.map(({ id }) => id)).toEqual(nodes.map(nodeId));
});

it('shows with a question what was said behind the node that it is about, for that turn alone', async () => {
  const rig = await talking({
    notes: (record) => (/locker/.test(record) ? 'The person told a word.' : 'Nothing new.'),
  });
  await rig.say(1, 'my locker word is velvet');
  for (let seq = 2; seq < 16; seq += 1) await rig.say(seq, CHATTER);
  await rig.settled();
  for (let seq = 16; seq < 20; seq += 1) await rig.say(seq, CHATTER);
  const [known, asked] = [await rig.nodes(), Promise.withResolvers<void>()];
  Object.assign(rig.knows, { mayWait: new Promise(() => undefined), isAsked: asked.resolve });
  const killed = rig.agent.compact(SESSION, PAYER, {});
  await asked.promise;
  await rig.restart();
  expect((await killed).kind).toBe('failed');
  expect(await rig.nodes()).toEqual(known);
  rig.knows.mayWait = Promise.resolve();
  const whole = shown(rig.model.requests.at(-1));
  expect(await rig.say(20, 'What is my locker word?')).toBe('It is velvet.');
  expect(rig.knows.expanded).toBe(0);
  expect(whole).not.toContain('velvet');
  await rig.say(21, 'thanks');
  expect(shown(rig.model.requests.findLast((one) => !isForNode(one)))).not.toContain(
    '[Word for word',
  );
  expect(JSON.stringify(await rig.transcript())).not.toContain('[Word for word');
});

it('waits for the node where the next call would be too large, and goes on without one that fails', async () => {
  const settings = { maxContextTokens: 20_000, maxTokens: 300 };
  const rig = await talking({ settings, compaction: { ...LOSSLESS, enabled: false } });
  for (let seq = 1; seq < 19; seq += 1) await rig.say(seq, CHATTER.repeat(8));
  const limits = { lossless: { softPercent: 40, hardPercent: 45, keepMessages: 4 } };
  const policy = { watermarkPercent: 66, watermarkTokens: 100_000, ...LOSSLESS, ...limits };
  rig.state.settings = { compaction: { ...policy, enabled: true } };
  const [gate, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  Object.assign(rig.knows, { mayWait: gate.promise, isAsked: asked.resolve });
  const answer = rig.say(19, CHATTER);
  await asked.promise;
  expect(rig.model.requests.filter((one) => !isForNode(one))).toHaveLength(18);
  gate.resolve();
  expect(await answer).toContain('Noted');
  const call = rig.model.requests.findLast((one) => !isForNode(one));
  expect(shown(call)).toContain('[Node t1-');
  expect(shown(call).length / 4).toBeLessThan(0.45 * 20_000);
  rig.state.settings = { compaction: { ...policy, enabled: false } };
  for (let seq = 20; seq < 36; seq += 1) await rig.say(seq, CHATTER.repeat(8));
  rig.state.settings = { compaction: { ...policy, enabled: true } };
  rig.knows.isDown = true;
  const before = await rig.nodes();
  expect(await rig.say(36, CHATTER)).toContain('Noted');
  expect(await rig.nodes()).toEqual(before);
});

it('cuts a node from the messages where no model writes one, and taints only by what is behind it', async () => {
  const rig = await talking({
    notes: () => "I'm sorry, I cannot help with that.",
    compaction: { ...LOSSLESS, summaryTokens: 200 },
  });
  const tainted: number[] = [];
  for (let seq = 1; seq < 26; seq += 1) {
    await rig.say(seq, `page ${seq} ${CHATTER}`, seq === 2);
    if ((await rig.nodes()).some(({ isForeign }) => isForeign === true)) tainted.push(seq);
  }
  await rig.settled();
  const nodes = await rig.nodes();
  // With the next node, nothing untrusted is in view any more, and the nodes lose their untrusted parts.
  expect(tainted.length).toBeGreaterThan(0);
  expect(tainted.at(-1)).toBeLessThan(20);
  expect(nodes.some((node) => 'isForeign' in node || 'untrusted' in node)).toBe(false);
  expect(JSON.stringify(nodes)).not.toContain('page 2 ');
  const answers = (await rig.transcript()).filter((entry) => entry.role === 'assistant');
  const touched = answers.flatMap((entry) =>
    entry.isTainted === true ? [firstSeqOf(entry.turnId) ?? 0] : [],
  );
  expect(touched).toEqual(Array.from({ length: touched.length }, (_, index) => index + 2));
  expect(nodes.length).toBeGreaterThan(1);
  expect(nodes.every(({ style }) => style === 'cut')).toBe(true);
  expect(nodes[0]?.text).toContain('page 1');
  const prompts = rig.model.requests.filter(isForNode).map(({ system }) => system[0]?.text ?? '');
  expect(prompts.some((text) => text.includes('bullet point'))).toBe(true);
  const tool = createExpand({ sessions: rig.sessions, maxResultChars: () => 10_000 });
  for (const node of nodes) {
    const input = { node: nodeId(node) };
    const found = await tool.run(input, {
      session: SESSION,
      turnId: turnId(`${SESSION}#99`),
    } as never);
    const isTouched = touched.some((seq) => seq >= node.from && seq < node.before);
    expect(tool.isOwn?.(input, found)).toBe(!isTouched);
  }
  await rig.agent.reset(SESSION);
  const expand = () =>
    tool.run({ node: nodeId(nodes[0] ?? { from: 0, before: 1 }) }, {
      session: SESSION,
      turnId: turnId(`${SESSION}#99`),
    } as never);
  await expect(expand()).rejects.toThrow('has no nodes');
  await rig.sessions.restore(SESSION, 0, messageId('r'));
  expect(await expand()).toContain('page 1');
});

it('never shows what was said in another conversation, nor takes a node that is not in view', async () => {
  const rig = await talking();
  const other = sessionKey('terminal:other');
  for (let seq = 1; seq < 14; seq += 1) {
    await rig.say(seq, `alpha ${seq} ${CHATTER}`);
    const id = turnId(`${other}#${seq}`);
    const entry: TranscriptEntry = {
      role: 'user',
      turnId: id,
      seq,
      text: `beta ${seq}`,
      at: seq,
    };
    await rig.sessions.append(other, [entry], { durable: false });
  }
  await rig.settled();
  const [node] = await rig.nodes();
  if (node === undefined) throw new Error('there is no node');
  await rig.sessions.append(
    other,
    [{ role: 'summary', text: 'x', nodes: [node], keepsFrom: turnId(`${other}#13`), at: 1 }],
    { durable: true },
  );
  const tool = createExpand({ sessions: rig.sessions, maxResultChars: () => 10_000 });
  const expand = (session: typeof other, id: string) =>
    tool.run({ node: id }, { session, turnId: turnId(`${session}#99`) } as never);
  expect(await expand(other, nodeId(node))).toContain('beta 1');
  expect(await expand(other, nodeId(node))).not.toContain('alpha');
  expect(await expand(SESSION, nodeId(node))).not.toContain('beta');
  await expect(expand(SESSION, 't500-600')).rejects.toThrow('There is no such node here');
  expect(rangeOfNode(nodeId(node))).toEqual({ from: 1, before: node.before });
});

it('writes a node anew that told of what was forgotten', async () => {
  const rig = await talking({
    notes: (record) => (/velvet/.test(record) ? 'They spoke of a velvet thing.' : 'Nothing.'),
  });
  await rig.say(1, 'my locker word is velvet otter');
  for (let seq = 2; seq < 16; seq += 1) await rig.say(seq, CHATTER);
  await rig.settled();
  expect(JSON.stringify(await rig.nodes())).toContain('velvet');
  rig.knows.notes = () => 'They told something.';
  const holds = (text: string) => text.includes('velvet otter');
  const store = rig.sessions as Parameters<typeof forgetInSessions>[0] & typeof rig.sessions;
  await forgetInSessions(store, [String(SESSION)], holds);
  expect(JSON.stringify(await rig.transcript())).not.toContain('velvet');
  expect((await rig.nodes())[0]?.text).toBe('[forgotten]');
  await rig.settled();
  expect((await rig.nodes())[0]?.text).toBe('They told something.');
});

it('takes over from the other engine in the middle, and hands back to it', async () => {
  const rig = await talking({
    compaction: { ...LOSSLESS, engine: 'summary', watermarkTokens: 1500 },
  });
  await rig.say(1, 'my locker word is velvet');
  for (let seq = 2; seq < 20; seq += 1) await rig.say(seq, CHATTER);
  await rig.settled();
  expect(await rig.nodes()).toEqual([]);
  for (let seq = 20; seq < 23; seq += 1) await rig.say(seq, CHATTER);
  const lossless = await rig.agent.compact(SESSION, PAYER, { engine: 'lossless' });
  expect(lossless.kind).toBe('compacted');
  expect((await rig.nodes())[0]?.from).toBe(0);
  expect(await rig.say(23, 'What is my locker word?')).toBe('It is velvet.');
  for (let seq = 24; seq < 33; seq += 1) await rig.say(seq, CHATTER);
  await rig.settled();
  expect(await rig.nodes()).toEqual([]);
});
