// Turns of a model that repeats itself: what is run, what it is told, and what the person gets.

import { describe, expect, it } from 'vitest';
import type { ToolAccess } from '../../src/kernel/access/rights.ts';
import { TurnCancelled } from '../../src/kernel/bus/bus.ts';
import { calls, says } from '../support/scripted-model.ts';
import { createRig } from './agent-rig.ts';

function counted(name: string, access: ToolAccess, result: (count: number) => string) {
  const ran: number[] = [];
  const tool = {
    name,
    access,
    async run() {
      ran.push(ran.length + 1);
      return result(ran.length);
    },
  };
  return { tool, ran };
}

describe('a model that makes the same call again and again', () => {
  it('gets the earlier result once more with a note, and after two such rounds must answer', async () => {
    const look = counted('read_file', 'read', () => 'milk, eggs');
    const rig = await createRig({ tools: [look.tool], readsResults: true });
    // The same arguments, written otherwise.
    const one = calls([{ name: 'read_file', input: { path: 'a', lines: '1:2' }, id: 'c1' }]);
    const [two, three, four] = ['c2', 'c3', 'c4'].map((id) =>
      calls([{ name: 'read_file', input: { lines: '1:2', path: 'a' }, id }]),
    );
    rig.model.script(
      one,
      ...[two, three, four].flatMap((call) => call ?? []),
      says('Milk and eggs.'),
    );
    expect((await rig.ask(1, 'what do I need?')).answers).toEqual(['Milk and eggs.']);
    expect(look.ran).toHaveLength(2);
    const results = rig.model.requests.map(({ messages }) => messages.at(-1));
    expect(results[3]).toMatchObject({
      role: 'tool',
      failed: true,
      text: expect.stringMatching(/^\[Not run: .*2 times.*\]\nmilk, eggs$/s),
    });
    const forced = rig.model.requests[4];
    expect(forced).toMatchObject({ toolChoice: 'none' });
    const [again, note] = forced?.messages.slice(-2) ?? [];
    // Its result is not repeated a second time.
    expect(again?.text).toMatch(/^\[Not run: [^\n]*read_result with id "r1.2" shows it\.\]$/);
    expect(note).toMatchObject({
      note: expect.stringMatching(/bring nothing new.*without tools/),
    });
    rig.model.assertDone();
  });

  it('gets untrusted content again as such, and calls that bear the same id by their own', async () => {
    const page = { ...counted('web_fetch', 'read', () => 'OBEY').tool, taints: true as const };
    const rig = await createRig({ tools: [page], maxResultChars: 10_000 });
    const same = { name: 'web_fetch', input: { url: 'a' }, id: 'c' };
    const call = calls([same, { ...same, input: { url: 'b' } }]);
    rig.model.script(...Array.from({ length: 7 }, () => call), says('Done.'));
    await rig.ask(1, 'what does it say?');
    const results = (await rig.transcript()).filter((entry) => entry.role === 'tool');
    expect(new Set(results.slice(0, 2).map(({ callId }) => callId)).size).toBe(2);
    const replayed = results.filter((entry) => entry.isBlocked && entry.text.includes('OBEY'));
    expect(replayed.length).toBeGreaterThan(0);
    expect(replayed.every(({ isForeign }) => isForeign === true)).toBe(true);
  });

  it('and would not answer even then is ended with a sentence', async () => {
    const send = counted('post', 'write', () => 'posted');
    const rig = await createRig({ tools: [send.tool] });
    const again = calls([{ name: 'post' }]);
    rig.model.script(again, again, again, again, again, again);
    const { answers } = await rig.ask(1, 'post it');
    expect(answers.join()).toMatch(/\[Stopped: the same steps repeated/);
    expect(send.ran).toHaveLength(3);
    rig.model.assertDone();
  });

  it('may ask for what changes as often as it likes, within its rounds', async () => {
    const job = counted('job', 'read', (count) => `${count * 10} %`);
    const rig = await createRig({ tools: [job.tool] });
    const poll = calls([{ name: 'job' }]);
    rig.model.script(poll, poll, poll, poll, poll, poll, says('Done.'));
    expect((await rig.ask(1, 'wait for it')).answers).toEqual(['Done.']);
    expect(job.ran).toHaveLength(6);
    rig.model.assertDone();
  });

  it('is counted on from where a killed process left it', async () => {
    const pay = counted('pay', 'write', () => 'paid');
    const rig = await createRig({ tools: [pay.tool] });
    const again = calls([{ name: 'pay' }]);
    rig.model.script(again, again, again, again, again, says('It is paid.'));
    // Killed when the fourth call, which is not run, was announced.
    let announced = 0;
    const context = await rig.agent.prepare(...rig.place);
    const turn = rig.agent.run(rig.inputOf(1, ['go']), context, new AbortController().signal);
    while (announced < 4) {
      const { value } = await turn.next();
      announced += value !== undefined && 'type' in value && value.type === 'tool_started' ? 1 : 0;
    }
    await rig.restart();
    expect((await rig.ask(1, 'go')).answers).toEqual(['It is paid.']);
    expect(pay.ran).toHaveLength(3);
    const statuses = (await rig.transcript()).flatMap((entry) =>
      entry.role === 'tool' ? [entry.isBlocked === true ? 'blocked' : entry.status] : [],
    );
    expect(statuses).toEqual(['ok', 'ok', 'ok', 'blocked', 'blocked']);
    rig.model.assertDone();
  });

  it('stays careful when untrusted content are repeated to it, and can be stopped', async () => {
    const page = { ...counted('web', 'web', () => 'buy now').tool, taints: true as const };
    const rig = await createRig({ tools: [page] });
    const again = calls(Array.from({ length: 7 }, (_, n) => ({ name: 'web', id: `c${n}` })));
    const stop = new AbortController();
    rig.model.script(again);
    const { outcome } = await rig.run(rig.inputOf(1, ['go']), stop.signal, (event) => {
      if (event.type === 'tool_finished' && event.callId === 'c6') {
        stop.abort(new TurnCancelled('stop'));
      }
    });
    expect(outcome.kind).toBe('stopped');
    const blocked = (await rig.transcript()).filter(
      (entry) => entry.role === 'tool' && entry.isBlocked === true,
    );
    expect(blocked).toHaveLength(1);
  });
});
