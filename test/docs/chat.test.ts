// The chats that the pages show really happen: the whole program between a simulated Telegram and a scripted model.

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
  await using world = await startTelegramWorld({
    respond: reply,
    pair: { [ADA]: 'owner' },
    // The preview of an answer can stand before what a tool says.
    channel: { streaming: false },
  });
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
  expectShown('README.md', [...seen.values()]);
  expect(telegram.chat(BOB.id).messages.filter(({ from }) => from === 'bot')).toEqual([]);
});

function expectShown(path: string, happened: readonly string[]) {
  const page = PAGES.find((each) => each.path === path);
  const shown = page === undefined ? [] : blocksOf(page, 'chat').join('\n').split(/\n\n/);
  expect(shown).toHaveLength(happened.length);
  for (const [index, said] of happened.entries()) {
    expect(said).toMatch(patternOf(words(shown[index] ?? '')));
  }
}

const DRAFT =
  'Summer party\nSaturday, 12 July, 16:00, in the garden\nEntry: 5 euros, children free';
const NOTICE = DRAFT.replace('5 euros', '4 euros');
const FINDING = '"Entry: 5 euros": the notes say 4 euros.';
const NOTES =
  'The summer party is on Saturday, 12 July, 16:00, in the garden. Entry 4 euros, children free.';

/** Who is asked next, by what stands there. */
function supervised(text: string): LlmReply {
  const next = (name: string, instructions: string, reasoning: string) =>
    say(JSON.stringify({ next: name, instructions, reasoning }));
  const plan = [
    ['researcher', 'Find date, place and price of the summer party.', 'facts are missing'],
    ['writer', 'Write a notice for the hall.', 'the facts are there'],
    ['reviewer', 'Check the notice against the facts.', 'it is hung up'],
    ['writer', 'Write the notice again with the right price.', 'the price is wrong'],
  ] as const;
  const [name, instructions, reasoning] = plan[text.split('<agent_response>').length - 1] ?? [];
  return next(name ?? 'FINISH', instructions ?? '', reasoning ?? 'it is checked');
}

function work({ system, lastUserText, toolResults }: LlmRequest): LlmReply {
  if (system.includes('You are the supervisor')) return supervised(lastUserText);
  if (system.includes('You are the researcher')) {
    if (toolResults.length === 0)
      return callTools({ name: 'recall', arguments: { query: 'summer party' } });
    return say(toolResults[0]?.text.includes(NOTES) ? NOTES : 'Nothing was found.');
  }
  if (system.includes('You are the writer'))
    return say(lastUserText.includes(FINDING) ? NOTICE : DRAFT);
  if (system.includes('You are the reviewer'))
    return say(lastUserText.includes(NOTES) ? FINDING : 'No findings.');
  return say(
    'This is the notice:\n\n[[output 3]]\n\nThe review had found a mistake, which is corrected:\n\n[[output 2]]\n\nThe first draft:\n\n[[output 1]]',
  );
}

it('shows a turn of the specialists from research to review', async () => {
  await using world = await startTelegramWorld({
    respond: work,
    config: { agents: { defaults: { model: 'openai/sim-1' }, mode: 'supervisor' } },
    files: { 'memory/MEMORY.md': `- ${NOTES}\n` },
    pair: { [ADA]: 'owner' },
  });
  const { telegram } = world;
  telegram.say(ADA, 'Write a notice about the summer party for the hall. Check it.');
  await world.hears(ADA, /This is the notice[\s\S]*5 euros/);
  telegram.say(ADA, '/why');
  await world.hears(ADA, /the supervisor asked writer/);
  const happened = telegram.chat(ADA).messages.map(lineOf);
  expectShown('docs/agent/several-models.md', happened);
});
