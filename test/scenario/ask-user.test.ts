// The agent asks and the turn waits for the answer, however long, over restarts: the whole program,
// seen from Telegram.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { LlmReply, LlmRequest } from '../support/llm-server.ts';
import { laterBy } from '../support/shifted-clock.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const PERSON = 700;
const MEMBER = { id: 701, first_name: 'Mia' };
const GROUP = -1_001_000_000_045;

const CITIES = { question: 'Which *city*?', choices: ['Berlin', 'Rome', '/new'] };

/** The newest is what a tool found. */
const isResult = ({ body }: LlmRequest) =>
  JSON.stringify(body).lastIndexOf('"role":"tool"') >
  JSON.stringify(body).lastIndexOf('"role":"user"');

/** Asks where it is told to, ends that turn without a word, and repeats what it is told else. */
function asking(request: LlmRequest): LlmReply {
  const { lastUserText } = request;
  if (isResult(request)) return { chunks: [''] };
  const strict = lastUserText.includes('STRICT');
  if (/ASK/.test(lastUserText)) {
    if (lastUserText.includes('OPEN'))
      return { toolCalls: [{ name: 'ask_user', arguments: { question: 'Which street?' } }] };
    const args = { ...CITIES, ...(strict ? { question: 'Which one?', free_text: false } : {}) };
    return { toolCalls: [{ name: 'ask_user', arguments: args }] };
  }
  return { chunks: [`Told: ${lastUserText}`] };
}

const world = await startTelegramWorld({
  respond: asking,
  env: laterBy(0),
  channel: {
    ...{ allowFrom: [`${PERSON}`, `${MEMBER.id}`], groups: [String(GROUP)] },
    streaming: false,
  },
});
const { telegram, model, bot, hears } = world;
telegram.group(GROUP);

/** The question with its buttons. */
const asks = (question: RegExp, from = 0, chat = PERSON) =>
  telegram.waitFor(() =>
    bot(chat)
      .slice(from)
      .some(({ text, buttons = [] }) => buttons.length > 0 && question.test(text)),
  );

afterEach(() => expect(telegram.violations).toEqual([]));

afterAll(() => world[Symbol.asyncDispose]());

describe('a question to the person', () => {
  it('ends the turn without a further word, and its press is answered once, over a kill', async () => {
    telegram.say(PERSON, 'ASK me');
    await asks(/Which city\?/);
    await model.received(2);
    await world.hasNo('outbound');
    await world.restart();
    expect(bot(PERSON)).toHaveLength(1);
    const press = telegram.press(PERSON, PERSON, 'Rome');
    const answer = await hears(PERSON, /^Told:/);
    expect(answer.text).toContain('they chose "Rome"');
    expect(answer.text).toContain('My choice: Rome');
    const query = press['callback_query'] as object;
    telegram.offer({ callback_query: { ...query, id: '4712' } });
    await hears(PERSON, /can no longer be answered/);
    const answers = bot(PERSON).filter(({ text }) => text.includes('they chose "Rome"'));
    expect(answers).toHaveLength(1);
    // Its label is no command.
    const before = bot(PERSON).length;
    telegram.say(PERSON, 'ASK me again');
    await asks(/Which city\?/, before);
    telegram.press(PERSON, PERSON, '/new');
    await hears(PERSON, /My choice: \/new/, before);
    const rounds = JSON.stringify(model.requests.at(-1)?.body).split('My choice: Rome');
    // Once as it was said, once as the model repeated it.
    expect(rounds).toHaveLength(3);
  });

  it('may have no choices', async () => {
    const before = bot(PERSON).length;
    telegram.say(PERSON, 'ASK something OPEN');
    await hears(PERSON, /^Which street\?/, before);
    telegram.say(PERSON, 'Elm Street');
    const answer = await hears(PERSON, /^Told: .*Elm Street/s, before);
    expect(answer.text).toContain('This answers your question "Which street?"');
  });

  it('is answered in words as well, which leave nothing to press', async () => {
    const before = bot(PERSON).length;
    telegram.say(PERSON, 'ASK once more');
    await asks(/Which city\?/, before);
    telegram.say(PERSON, 'Paris, rather');
    const answer = await hears(PERSON, /^Told: .*Paris/s, before);
    expect(answer.text).toContain('This answers your question "Which city?", unless');
    // What a killed process left below earlier ones is told who presses it.
    const since = () => bot(PERSON).slice(before);
    await telegram.waitFor(() => since().every(({ buttons = [] }) => buttons.length === 0));
    telegram.say(PERSON, 'and now?');
    expect((await hears(PERSON, /and now/, before)).text).not.toContain('answers');
  });

  it('takes only its choices where words do not count, and the place of an earlier one', async () => {
    const before = bot(PERSON).length;
    telegram.say(PERSON, 'ASK first');
    await asks(/Which city\?/, before);
    telegram.say(PERSON, 'ASK STRICT');
    await asks(/Which one\?/, before);
    telegram.say(PERSON, 'whatever');
    expect((await hears(PERSON, /whatever/, before)).text).toContain('is still open');
    telegram.say(PERSON, 'berlin');
    expect((await hears(PERSON, /Told: .*berlin/s, before)).text).toContain('they chose "Berlin"');
  });

  it('is the business of whoever was asked, also in a group', async () => {
    telegram.say({ id: PERSON, first_name: 'Ann' }, '@nano_sim_bot ASK here', { chatId: GROUP });
    await asks(/Which city\?/, 0, GROUP);
    telegram.press(MEMBER, GROUP, 'Rome');
    await hears(GROUP, /not yours to decide/);
    telegram.press({ id: PERSON, first_name: 'Ann' }, GROUP, 'Berlin');
    expect((await hears(GROUP, /^Told:/)).text).toContain('they chose "Berlin"');
  });
});

it('forgets after a week what was asked and answered', async () => {
  using database = new DatabaseSync(join(world.home.path, 'state.db'), { readOnly: true });
  const ended = database.prepare(
    "SELECT count(*) AS n FROM key_value WHERE scope = 'questions' AND key LIKE 'ended:%'",
  );
  expect(Number(ended.get()?.['n'])).toBeGreaterThan(0);
  await world.gateway.skip(8 * 86_400_000);
  await expect.poll(() => ended.get()).toEqual({ n: 0 });
});
