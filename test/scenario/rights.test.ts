// Who may have what done, on which door: in a group, over the configuration while the program runs, at
// the machine itself. The whole program before a model that calls whatever it is told to.

import { readFile } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { COMMAND_LIST } from '../../src/features/command-list.ts';
import type { LlmReply, LlmRequest } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = { id: 700, first_name: 'Ann' };
const MEMBER = { id: 701, first_name: 'Mia' };
const PAIRED = { id: 702, first_name: 'Paul' };
const GROUP = -1_001_000_000_045;
const AT = '@nano_sim_bot';

function obey({ lastUserText, toolResults }: LlmRequest): LlmReply {
  if (toolResults.length > 0) return { chunks: [`Result: ${toolResults.at(-1)?.text}`] };
  const [, path] = /WRITE (\S+)/.exec(lastUserText) ?? [];
  if (path === undefined) return { chunks: ['Nothing to do.'] };
  return { toolCalls: [{ name: 'write_file', arguments: { path, content: 'ordered' } }] };
}

const world = await startTelegramWorld({
  respond: obey,
  channel: {
    ...{ allowFrom: [`${MEMBER.id}`], streaming: false },
    ...{ groups: [String(GROUP)], groupAllow: 'members' },
  },
  pair: { [OWNER.id]: 'owner', [PAIRED.id]: 'trusted' },
});
const { telegram, file, nanobot, bot } = world;
telegram.group(GROUP);
afterAll(() => world[Symbol.asyncDispose]());

const written = (path: string) => readFile(file(path), 'utf8').catch(() => undefined);

async function answerTo(who: typeof OWNER, text: string, chatId = who.id): Promise<string> {
  const before = bot(chatId).length;
  telegram.say(who, chatId === GROUP ? `${AT} ${text}` : text, { chatId });
  return (await telegram.waitFor(() => bot(chatId)[before])).text;
}

describe('what may be done', () => {
  it('is the owner’s alone between two, and nobody’s in a group', async () => {
    expect(await answerTo(OWNER, 'WRITE own.txt')).toContain('Created');
    expect(await answerTo(MEMBER, 'WRITE member.txt')).toContain('Permission denied');
    for (const who of [OWNER, MEMBER, PAIRED]) {
      expect(await answerTo(who, `WRITE group-${who.id}.txt`, GROUP)).toContain(
        'Permission denied',
      );
    }
    expect(await written('own.txt')).toBe('ordered');
    for (const path of ['member.txt', 'group-700.txt', 'group-701.txt', 'group-702.txt']) {
      expect(await written(path)).toBeUndefined();
    }
  });

  it('changes with the configuration, for the one who is named and up to what the group has', async () => {
    const people = [
      { who: `telegram:${MEMBER.id}`, write: 'free' },
      { who: `telegram:${OWNER.id}`, write: 'never' },
    ] as const;
    await world.configure({ tools: { people: [...people] } });
    await world.gateway.printed(/configuration is in force/);
    expect(await answerTo(MEMBER, 'WRITE now.txt')).toContain('Created');
    expect(await answerTo(OWNER, 'WRITE not.txt')).toContain('Permission denied');
    expect(await answerTo(MEMBER, 'WRITE there.txt', GROUP)).toContain('Permission denied');
    expect([await written('now.txt'), await written('not.txt')]).toEqual(['ordered', undefined]);
  });

  it('is the machine user’s own at the terminal', async () => {
    expect(await nanobot('agent', '-m', 'WRITE terminal.txt')).toContain('Created');
  });
});

describe('commands', () => {
  it('of a paired person are for their own chat; in the group nothing hears them (A03)', async () => {
    expect(await answerTo(PAIRED, '/status')).toContain('Conversation: telegram:702');
    expect(await answerTo(PAIRED, '/strangers')).toContain('Only my owner');
    const before = bot(GROUP).length;
    for (const command of ['/status', '/new', '/stop', '/model x', '/allow 1', '/approvals']) {
      telegram.say(PAIRED, `${command}${AT}`, { chatId: GROUP });
    }
    telegram.say(MEMBER, `/status${AT}`, { chatId: GROUP });
    const answer = await telegram.waitFor(() => bot(GROUP)[before]);
    expect(answer.text).toContain(`telegram:${GROUP}`);
    telegram.say(MEMBER, `/model${AT} x`, { chatId: GROUP });
    const refused = await telegram.waitFor(() => bot(GROUP)[before + 1]);
    expect(refused.text).toMatch(/only in a private chat/);
    telegram.say(OWNER, `/strangers${AT}`, { chatId: GROUP });
    const notThere = await telegram.waitFor(() => bot(GROUP)[before + 2]);
    expect(notThere.text).toMatch(/only in a private chat/);
  });

  it('shows everybody the commands they may give', async () => {
    expect(await answerTo(OWNER, '/help')).toContain('/approvals');
    const help = await answerTo(MEMBER, '/help');
    expect(help).toContain('/status');
    expect(help).not.toMatch(/\/(?:approvals|allow|block|people|strangers)/);
    expect(await answerTo(OWNER, '/approvals')).toContain('Nothing is waiting');
  });

  it('are contributed by every feature that lists some', async () => {
    const help = await answerTo(OWNER, '/help');
    const shown = [...help.matchAll(/\/([a-z]+)/g)].map(([, name = '']) => name);
    const listed = COMMAND_LIST.map(({ name }) => name);
    expect(listed.filter((name) => !shown.includes(name))).toEqual(['start']);
    expect(shown.filter((name) => !listed.includes(name))).toEqual([]);
  });
});
