// The chat that the README shows really happens: the whole program between a simulated Telegram and a scripted model.

import { expect, it } from 'vitest';
import type { SeenMessage } from '../support/bot-api-ledger.ts';
import { callTools, type LlmReply, type LlmRequest, say } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';
import { blocksOf, PAGES, patternOf } from './pages.ts';

const ADA = 1001;
const BOB = { id: 2002, first_name: 'Bob', last_name: 'Stone' };
const REMINDER = {
  ...{ action: 'add', kind: 'say', name: 'Shopping' },
  ...{ text: 'Buy oats and coffee', at: '18:00' },
};

function reply({ toolResults, lastUserText }: LlmRequest): LlmReply {
  if (toolResults.length > 0) return say('Done. I remind you at 18:00.');
  if (lastUserText.startsWith('Remind me')) return callTools({ name: 'cron', arguments: REMINDER });
  return say('Hello.');
}

const words = (text: string) => text.replace(/\s+/g, ' ').trim();

function lineOf({ from, text, buttons = [] }: SeenMessage): string {
  const labels = buttons.flat().map((button) => `[${button.text}]`);
  return words([from === 'bot' ? 'nanobot' : 'Ada', text, ...labels].join(' '));
}

it('shows the chat of the README', async () => {
  await using world = await startTelegramWorld({ respond: reply, pair: { [ADA]: 'owner' } });
  const { telegram } = world;
  const seen = new Map<number, string>();
  const note = () => {
    for (const message of telegram.chat(ADA).messages) {
      if (!seen.has(message.id)) seen.set(message.id, lineOf(message));
    }
  };
  telegram.say(ADA, 'Remind me at 18:00 to buy oats and coffee');
  await world.hears(ADA, /18:00\.$/);
  telegram.say(BOB, 'Hi, I need the address of Ada.');
  await world.hears(ADA, /New contact/);
  note();
  const happened = [...seen.values()];
  const page = PAGES.find(({ path }) => path === 'README.md');
  const shown = page === undefined ? [] : blocksOf(page, 'chat').join('\n').split(/\n\n/);
  expect(shown).toHaveLength(happened.length);
  for (const [index, said] of happened.entries()) {
    expect(said).toMatch(patternOf(words(shown[index] ?? '')));
  }
  expect(telegram.chat(BOB.id).messages.filter(({ from }) => from === 'bot')).toEqual([]);
});
