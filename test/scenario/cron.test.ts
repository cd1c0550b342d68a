// Jobs through the whole program: asked for in words, allowed by the owner, run while the process comes
// and goes, and known in the chat afterwards.

import { afterAll, expect, it } from 'vitest';
import type { LlmReply, LlmRequest } from '../support/llm-server.ts';
import { laterBy } from '../support/shifted-clock.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;
const REMINDER = { action: 'add', kind: 'say', name: 'Tea', text: 'Tea is ready', at: 'in 1s' };

function reply({ lastUserText, toolResults, body }: LlmRequest): LlmReply {
  if (lastUserText.includes('[Heartbeat')) return { chunks: ['HEARTBEAT_OK'] };
  if (lastUserText.includes('[Scheduled job')) return { chunks: ['The paper is sold out.'] };
  if (lastUserText.startsWith('[An owner allowed')) return { chunks: ['It is set.'] };
  if (toolResults.length > 0) return { chunks: ['I wait for your yes.'] };
  const wait = /wake me (in \w+)/.exec(lastUserText)?.[1];
  if (wait !== undefined) {
    const wish = { action: 'add', kind: 'say', name: wait, text: `Wake up, ${wait}`, at: wait };
    return { toolCalls: [{ name: 'cron', arguments: wish }] };
  }
  if (lastUserText.includes('remind'))
    return { toolCalls: [{ name: 'cron', arguments: REMINDER }] };
  const knows = JSON.stringify(body).includes('The paper is sold out.');
  return { chunks: [knows ? 'I said it is sold out.' : 'I said nothing.'] };
}

const world = await startTelegramWorld({
  respond: reply,
  config: { tools: { approvals: { owner: 'strict' } } },
  pair: { [OWNER]: 'owner' },
});
const { telegram, model } = world;
afterAll(() => world[Symbol.asyncDispose]());

const texts = () => world.texts(OWNER);
const hears = async (pattern: RegExp) => (await world.hears(OWNER, pattern)).text;
const asked = (words: string) =>
  model.requests.filter(({ lastUserText }) => lastUserText.includes(words));

it('asks the owner first, reports into the chat that then knows of it, and each run is one over a kill', async () => {
  telegram.say(OWNER, 'please remind me of the tea');
  expect(await hears(/Set the reminder/)).toMatch(
    /^Set the reminder Tea: Tea is ready, (?:today|tomorrow) \d\d:\d\d\? Asked by [^\n{]*\n+Expires in 12 hours\./,
  );
  telegram.press(OWNER, OWNER, 'Allow once');
  await hears(/^It is set\.$/);
  await hears(/^Tea\s+Tea is ready$/);

  // Made at the machine, beside the gateway: it reports where the owner wrote last.
  void world.nanobot('cron', 'add', 'Water', '--say', '--at', 'in 1s');
  telegram.say(OWNER, '/cron add every 1h: See whether the paper is there');
  const made = await hears(/^Created: (j\w+)/);
  const id = /j[0-9a-f]{8}/.exec(made)?.[0] ?? '';
  telegram.say(OWNER, `/cron run ${id}`);
  await model.received(4);
  await world.restart();
  await hears(/The paper is sold out\.$/);
  telegram.say(OWNER, 'what did you say?');
  await hears(/^I said it is sold out\.$/);
  expect(asked('[Scheduled job').length).toBeLessThanOrEqual(2);
  expect(texts().filter((text) => text.includes('The paper is sold out.'))).toHaveLength(1);
  expect(JSON.stringify(asked('[Scheduled job')[0]?.body)).not.toContain('remind me');

  telegram.say(OWNER, '/quiet 22-7');
  await hears(/are not hours I understand/);
  telegram.say(OWNER, '/quiet 22:00-7:00');
  await hears(/^Quiet hours 22:00 to 07:00: /);
  telegram.say(OWNER, '/quiet 00:00-23:59');
  await hears(/^Quiet hours 00:00 to 23:59: /);
  telegram.say(OWNER, '/cron add say in 1s: Take the pills');
  await hears(/^Take the pills$/);
  telegram.say(OWNER, '/quiet off');
  await hears(/^You have no quiet hours/);
  telegram.say(OWNER, '/cron');
  expect(await hears(/every 1h; next: /)).toContain(id);
  // The template of HEARTBEAT.md asks for nothing.
  expect(asked('[Heartbeat')).toEqual([]);
  await hears(/^Water$/);
});

const MINUTE_MS = 60_000;

it('counts a wait from the request, also where the approval came minutes later', async () => {
  const shiftMs = 11 * MINUTE_MS;
  const began = texts().length;
  const isPut = (text: string) => text === 'I wait for your yes.';
  const toDecide = () =>
    world.bot(OWNER).filter(({ buttons }) => JSON.stringify(buttons)?.includes('Allow once'));
  for (const [before, wait] of ['in 10m', 'in 3h'].entries()) {
    telegram.say(OWNER, `wake me ${wait}`);
    await telegram.waitFor(() => toDecide().length === before + 1);
    await telegram.waitFor(() => texts().slice(began).filter(isPut).length === before + 1);
  }
  const requested = Date.now();
  await world.gateway.kill();
  await using _later = await world.home.start(laterBy(shiftMs));
  for (const left of [1, 0]) {
    telegram.press(OWNER, OWNER, 'Allow once');
    await telegram.waitFor(() => toDecide().length === left);
  }
  await world.hears(OWNER, /^in 10m\s+Wake up, in 10m$/, began);
  telegram.say(OWNER, '/cron');
  const { text } = await world.hears(OWNER, /in 3h: once.*next: /, began);
  const [, day, time] = /in 3h: once.*next: \w+, (\S+) (\S+)/.exec(text) ?? [];
  const late = Date.parse(`${day}T${time}Z`) - (requested + 180 * MINUTE_MS);
  expect(Math.abs(late), text).toBeLessThan(shiftMs / 2);
});

it('says once, in the time zone of the person, when a reminder was due, and only the button of Undo expires', async () => {
  await world.restart();
  telegram.say(OWNER, '/approvals normal');
  await hears(/^Approvals: normal/);
  telegram.say(OWNER, '/timezone Asia/Tokyo');
  await hears(/^Your time zone is now Asia/);
  telegram.say(OWNER, 'please remind me of the tea');
  const { id, text } = await world.hears(OWNER, /^Reminder set/);
  telegram.say(OWNER, '/cron add say in 2m: Turn the oven off');
  const due = /next: (.+Asia\/Tokyo\))/.exec(await hears(/Turn the oven off/))?.[1];
  await world.gateway.kill();
  await using _later = await world.home.start(laterBy(70 * MINUTE_MS));
  expect(await hears(/\bdue .*Turn the oven off$/s)).toBe(`due ${due}\n\nTurn the oven off`);
  const receipt = () => world.bot(OWNER).find((each) => each.id === id);
  await telegram.waitFor(() => !JSON.stringify(receipt()?.buttons ?? []).includes('Undo'));
  expect(receipt()?.text).toBe(text);
});
