// What a provider may keep of the last call has to stand unchanged at the beginning of the next one, and
// whoever breaks that is named in the log.

import { describe, expect, it } from 'vitest';
import { createCacheAlarm, createFingerprints } from '../../src/agent/fingerprints.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { sessionKey } from '../../src/kernel/message/ids.ts';
import type { Logger } from '../../src/lib/logger.ts';
import { calls, says } from '../support/scripted-model.ts';
import { createRig } from './agent-rig.ts';

type Line = { readonly level: string; readonly message: string; readonly section: unknown };

function listening() {
  const lines: Line[] = [];
  const write = (level: string) => (message: string, fields?: Readonly<Record<string, unknown>>) =>
    void (
      message.startsWith('prompt cache') &&
      lines.push({ level, message, section: fields?.['section'] })
    );
  const log: Logger = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  return { log, lines };
}

async function create() {
  const { log, lines } = listening();
  const look = { name: 'look', access: 'read' as const, run: async () => 'a cat' };
  const rig = await createRig({ log, tools: [look] });
  await rig.write('AGENTS.md', 'Be kind.');
  let turn = 0;
  const ask = async () => {
    turn += 1;
    rig.model.script(calls([{ name: 'look' }]), says(`answer ${turn}`));
    await rig.clock.advance(90_000);
    await rig.ask(turn, `question ${turn}`);
  };
  return { rig, ask, lines };
}

describe('the beginning of a call', () => {
  it('is the same to the byte over 20 turns with tools while time passes', async () => {
    const { rig, ask, lines } = await create();
    for (let turn = 1; turn <= 20; turn += 1) await ask();
    expect(lines).toEqual([]);
    const sent = rig.model.sent.map(({ tools, system, messages }) => ({
      fixed: JSON.stringify([tools, system.filter(({ stable }) => stable)]),
      messages: messages.map((message) => JSON.stringify(message)),
    }));
    expect(new Set(sent.map(({ fixed }) => fixed)).size).toBe(1);
    for (const [index, { messages }] of sent.entries()) {
      const before = sent[index - 1]?.messages ?? [];
      expect(messages.slice(0, before.length)).toEqual(before);
    }
  });

  it('that somebody changes is named once, and again only when it changes again', async () => {
    const { rig, ask, lines } = await create();
    await ask();
    await rig.write('AGENTS.md', 'Be very kind.');
    await ask();
    await ask();
    expect(lines).toMatchObject([{ level: 'warn', section: 'AGENTS.md' }]);
    await rig.write('USER.md', 'Ann.');
    await ask();
    rig.state.memory = 'Ann has a cat.';
    await ask();
    expect(lines.slice(1)).toMatchObject([
      { level: 'warn', section: 'USER.md' },
      { level: 'info', section: 'Memory' },
    ]);
  });

  it('of a conversation that begins anew or takes something back is no alarm', async () => {
    const { rig, ask, lines } = await create();
    await ask();
    await ask();
    await rig.agent.reset(rig.place[0]);
    await ask();
    await ask();
    expect(lines).toEqual([]);
  });

  it('of a conversation that was summed up in longer messages is no alarm, and of a changed one is', () => {
    const { log, lines } = listening();
    const alarm = createCacheAlarm(createFingerprints());
    const call = (...texts: string[]) => {
      const messages = texts.map((text) => ({ role: 'user', text }) as const);
      const prompt = { session: sessionKey('cli:a'), rights: ALL_RIGHTS, tools: [], system: [] };
      alarm.asked({ ...prompt, messages }, log)({ model: 'm' });
    };
    call('a', 'b', 'c', 'd');
    call('a summary '.repeat(50), 'd');
    expect(lines).toEqual([]);
    call('another summary '.repeat(50), 'd', 'e');
    expect(lines).toMatchObject([{ level: 'warn', section: 'conversation' }]);
  });
});
