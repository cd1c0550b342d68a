// An owner's "Always allow", from the first press on: silent for exactly that call, in that conversation;
// asked about again for everything else. The whole program, seen from Telegram and the web page.

import { readFile, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { followEvents, type ServerEvent } from '../http/http-rig.ts';
import type { LlmReply, LlmRequest } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;
const RUN = /RUN (\{.*\})/;
const COMMAND = { argv: ['./tool', 'a', 'b'] };

/** Runs what the newest words say, whoever wrote them. */
function obey({ lastUserText, toolResults }: LlmRequest): LlmReply {
  const result = toolResults.at(-1)?.text;
  if (lastUserText.startsWith('[An owner allowed')) return { chunks: [`Seen: ${lastUserText}`] };
  if (result !== undefined) return { chunks: [`Result: ${result}`] };
  const order = RUN.exec(lastUserText)?.[1];
  if (order === undefined) return { chunks: ['Nothing to do.'] };
  return { toolCalls: [{ name: 'exec', arguments: JSON.parse(order) }] };
}

const world = await startTelegramWorld({
  respond: obey,
  channel: { streaming: false },
  config: { tools: { approvals: { owner: 'strict' } } },
  pair: { [OWNER]: 'owner' },
  files: { 'sub/keep': '', 'sub/tool': '' },
});
const { telegram, bot, hears, file } = world;
afterAll(() => world[Symbol.asyncDispose]());
await symlink('/usr/bin/printf', file('tool'));
await rm(file('sub/tool'));
await symlink('/usr/bin/printf', file('sub/tool'));

const run = (call: object) => `RUN ${JSON.stringify(call)}`;
const ask = (words: string, like: RegExp) => world.asks(OWNER, words, like);
const questions = () => bot(OWNER).filter(({ text }) => text.includes('Asked by')).length;

const press = (label: string, like: RegExp) => world.presses(OWNER, label, like);

/** The call is asked about; then it is said no to. */
async function isAsked(call: object, extra: Parameters<typeof telegram.say>[2] = {}) {
  const before = bot(OWNER).length;
  telegram.say(OWNER, run(call), extra);
  await hears(OWNER, /Asked by/, before);
  await hears(OWNER, /^Result: Not run yet/, before);
  return () => press('Deny', /Refused: nothing is done\.$/);
}

describe('a call that is always allowed', () => {
  it('outlives a kill between the press and its first use, and runs unasked from then on', async () => {
    const question = await ask(run(COMMAND), /Asked by/);
    expect(question).toContain('exactly this call, while no untrusted content is in view');
    await hears(OWNER, /^Result: Not run yet/);
    await press('Always allow', /Allowed, and exactly this call always/);
    await hears(OWNER, /^Seen: .*It was run once/s);
    await world.restart();
    await ask('/new', /New conversation/);
    const before = questions();
    expect(await ask(run(COMMAND), /^Result: /)).not.toContain('Not run yet');
    expect(questions()).toBe(before);
  }, 60_000);

  it('is asked about again while untrusted content is in view, as a program’s under `strict`, and only then', async () => {
    const deny = await isAsked(COMMAND);
    expect(bot(OWNER).findLast(({ buttons }) => buttons?.flat().length === 2)).toBeDefined();
    await deny();
    await ask('/new', /New conversation/);
    const before = questions();
    expect(await ask(run(COMMAND), /^Result: /)).not.toContain('Not run yet');
    expect(questions()).toBe(before);
  });

  it('covers nothing that is only like it, whoever orders that', async () => {
    for (const other of [
      { argv: ['./tool', 'b', 'a'] },
      { argv: ['./tool', 'a', 'b', '--', 'c'] },
      { argv: ['env', 'LD_PRELOAD=x.so', './tool', 'a', 'b'] },
      { ...COMMAND, cwd: 'sub' },
      { script: './tool a b' },
    ]) {
      const deny = await isAsked(other);
      await deny();
    }
    await rm(file('tool'));
    await symlink('/usr/bin/echo', file('tool'));
    const deny = await isAsked(COMMAND);
    await deny();
    await rm(file('tool'));
    await symlink('/usr/bin/printf', file('tool'));
    await ask('/new', /New conversation/);
    expect(await ask(run(COMMAND), /^Result: /)).not.toContain('Not run yet');
  }, 60_000);

  it('is listed in the chat and on the machine, stands in the audit, and ends when taken back', async () => {
    const listed = await ask('/approvals', /Allow rules/);
    expect(listed).toContain('"argv":["./tool","a","b"]');
    const [always] = JSON.parse(await world.nanobot('approvals', 'list', '--json'));
    expect(always).toMatchObject({ state: 'always', tool: 'exec', uses: 3 });
    expect(listed).toContain(always.id.slice(0, 8));
    await world.nanobot('approvals', 'revoke', always.id.slice(0, 8));
    const deny = await isAsked(COMMAND);
    await deny();
    expect(await ask('/approvals', /Nothing is waiting/)).not.toContain('Allow rules');
    const audit = (await readFile(join(world.home.path, 'audit.jsonl'), 'utf8')).split('\n');
    const entries = audit.filter((line) => line.includes('"subject":"standing"'));
    const of = (action: string) => entries.filter((line) => line.includes(`"action":"${action}"`));
    expect([of('given').length, of('used').length]).toEqual([1, 3]);
  });
});

describe('on the web page', () => {
  it('the third button allows for good what is asked in that chat, in all chats of the page', async () => {
    const { address, credentials } = world.gateway;
    const post = async (chat: string, clientId: string, text: string, also: object = {}) => {
      const headers = { ...credentials, 'content-type': 'application/json' };
      const body = JSON.stringify({ clientId, text, ...also });
      const path = `${address}/api/web/chats/${chat}/messages`;
      expect((await fetch(path, { method: 'POST', headers, body })).status).toBe(202);
    };
    const says = async (chat: string, like: RegExp) => {
      const isLike = ({ data }: ServerEvent) => {
        const { from, text } = data as PageEvent;
        return from === 'agent' && like.test(text ?? '');
      };
      const path = `/api/web/chats/${chat}/events`;
      const events = await followEvents(address, path, (all) => all.some(isLike), credentials);
      return events.findLast(isLike)?.data as PageEvent;
    };
    await post('a', 'c1', run({ argv: ['echo', 'page-one'] }));
    const { choices = [] } = await says('a', /Asked by/);
    expect(choices.map(({ label }) => label).slice(0, 3)).toEqual([
      ...['Allow once', 'Deny', 'Allow for 1 hour'],
    ]);
    await says('a', /^Result: Not run yet/);
    await post('a', 'c2', 'Always allow', { press: choices.at(-1)?.token });
    await says('a', /Allowed, and exactly this call always/);
    await says('a', /^Seen: .*page-one/s);
    await post('a', 'c3', '/new');
    await says('a', /New conversation/);
    await post('a', 'c4', run({ argv: ['echo', 'page-one'] }));
    await says('a', /^Result: (?!Not run).*page-one/s);
    await post('b', 'c5', run({ argv: ['echo', 'page-one'] }));
    await says('b', /^Result: (?!Not run).*page-one/s);
  }, 60_000);

  it('the page of people allows for good what was asked at another door', async () => {
    const call = { argv: ['echo', 'from-the-panel'] };
    const { address, credentials } = world.gateway;
    await ask('/new', /New conversation/);
    await isAsked(call);
    const view = await fetch(`${address}/api/v1/people`, { headers: credentials });
    const { questions: open } = (await view.json()) as { questions: readonly PageEvent[] };
    const [question] = open.filter(({ markdown }) => markdown?.includes('from-the-panel'));
    const token = question?.choices?.find(({ label }) => label === 'Always allow')?.token;
    const headers = { ...credentials, 'content-type': 'application/json' };
    const body = JSON.stringify({ token });
    const before = bot(OWNER).length;
    await fetch(`${address}/api/v1/people/answers`, { method: 'POST', headers, body });
    await hears(OWNER, /^Seen: .*from-the-panel/s, before);
    await ask('/new', /New conversation/);
    expect(await ask(run(call), /^Result: /)).toContain('from-the-panel');
  }, 60_000);

  it('the page lists it and revokes it, which is in the audit', async () => {
    const call = { argv: ['echo', 'revoked-there'] };
    const { address, credentials } = world.gateway;
    await ask('/new', /New conversation/);
    await isAsked(call);
    const before = bot(OWNER).length;
    await press('Always allow', /Allowed, and exactly this call always/);
    await hears(OWNER, /^Seen: .*revoked-there/s, before);
    const rules = async () => {
      const answer = await fetch(`${address}/api/v1/approvals/rules`, { headers: credentials });
      const view = (await answer.json()) as { rules: readonly { id: string; about: string }[] };
      return view.rules.filter(({ about }) => about.includes('revoked-there'));
    };
    const [rule] = await rules();
    const headers = { ...credentials, 'content-type': 'application/json' };
    const revoke = async () => {
      const path = `/api/v1/approvals/rules/${rule?.id}/revoke`;
      return fetch(`${address}${path}`, { method: 'POST', headers, body: '{}' });
    };
    expect([(await revoke()).status, (await revoke()).status]).toEqual([200, 404]);
    expect(await rules()).toEqual([]);
    await expect
      .poll(() => world.nanobot('audit', 'show', '--limit', '20'))
      .toMatch(new RegExp(`revoked.*${rule?.id}|${rule?.id}.*revoked`));
    await ask('/new', /New conversation/);
    await isAsked(call);
  }, 60_000);

  it('what is forgotten is asked about again', async () => {
    await ask('/forget from-the-panel', /from-the-panel/);
    await press('Forget', /Forgotten/);
    await ask('/new', /New conversation/);
    await isAsked({ argv: ['echo', 'from-the-panel'] });
  }, 60_000);
});

type PageEvent = {
  readonly from?: string;
  readonly text?: string;
  readonly markdown?: string;
  readonly choices?: readonly { readonly label: string; readonly token: string }[];
};
