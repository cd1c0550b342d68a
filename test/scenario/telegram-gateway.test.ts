// The whole program between a simulated Telegram and a simulated model: what a person in the chat
// sees.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { echo, say } from '../support/llm-server.ts';
import { MODEL_KEY, startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;
const UNKNOWN_SENDER = 701;

const world = await startTelegramWorld({
  respond: echo,
  channel: {
    streaming: true,
    allowFrom: [
      '700',
      '702',
      '703',
      '704',
      '705',
      '706',
      '707',
      '708',
      '720',
      '721',
      '722',
      '723',
      '724',
    ],
  },
});
const { telegram, model, home, gateway } = world;
afterAll(() => world[Symbol.asyncDispose]());
const nanobot = (...args: readonly string[]) => runNanobot(args, { home: home.path });

afterEach(() => model.respond(echo));

const gate = () => Promise.withResolvers<void>();

/** Until everything of the answers in this chat has gone out: another one comes behind them. */
async function answered(chat: number) {
  model.respond(echo);
  telegram.say(chat, 'and nonce-behind');
  const isBehind = ({ text }: { readonly text: string }) => text === 'nonce-behind';
  const { id } = await telegram.waitFor(() =>
    telegram.chat(chat).messages.find((one) => one.from === 'bot' && isBehind(one)),
  );
  telegram.erase(chat, id);
}

describe('a conversation by Telegram', () => {
  it('answers a question', async () => {
    telegram.say(OWNER, 'please say nonce-hello');
    expect((await telegram.nextMessage(OWNER)).text).toBe('nonce-hello');
  });

  it('remembers what was said before, until /new', async () => {
    telegram.say(703, 'I am nonce-one');
    await telegram.nextMessage(703);
    telegram.say(703, 'and nonce-two');
    await telegram.nextMessage(703);
    expect(JSON.stringify(model.requests.at(-1)?.body)).toContain('nonce-one');
    telegram.say(703, '/new');
    expect((await telegram.nextMessage(703)).text).toBe(
      'New conversation. The old one is saved; /restore brings it back.',
    );
    telegram.say(703, 'now nonce-three');
    await telegram.nextMessage(703);
    expect(JSON.stringify(model.requests.at(-1)?.body)).not.toContain('nonce-one');
  });

  it('shows a long answer while it grows and ends with the whole text once', async () => {
    let finish: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      finish = resolve;
    });
    model.respond(() => ({
      chunks: ['This is the beginning of a long answer. ', gate, 'The end.'],
    }));
    telegram.say(704, 'tell me a story');
    const draft = await telegram.nextMessage(704);
    expect(draft.text).toContain('This is the beginning');
    finish();
    const final = await telegram.waitFor(() =>
      telegram.chat(704).messages.find(({ text }) => text.endsWith('The end.')),
    );
    expect(final.id).toBe(draft.id);
    const answers = telegram.chat(704).messages.filter(({ from }) => from === 'bot');
    expect(answers).toHaveLength(1);
    expect(telegram.chat(704).actions.map(({ action }) => action)).toContain('typing');
  });

  it('shows the end of a long answer while it grows, and changes no message to what it shows', async () => {
    const words = Array.from({ length: 1200 }, (_, n) => `w${n}`);
    const [one, two] = [words.slice(0, 800).join(' '), words.slice(800).join(' ')];
    const [begun, half, whole] = [gate(), gate(), gate()];
    const before = telegram.unmodified;
    model.respond(() => ({
      chunks: ['Counting aloud. ', begun.promise, `${one} `, half.promise, two, whole.promise],
    }));
    telegram.say(720, 'count for me');
    await telegram.nextMessage(720);
    begun.resolve();
    const shown = () => telegram.chat(720).messages.filter(({ from }) => from === 'bot');
    await telegram.waitFor(() => shown().at(-1)?.text.endsWith('w799'));
    half.resolve();
    await telegram.waitFor(() => shown().length === 2 && shown()[1]?.text.endsWith('w1199'));
    whole.resolve();
    await answered(720);
    expect(
      shown()
        .map(({ text }) => text)
        .join(' '),
    ).toBe(`Counting aloud. ${one} ${two}`);
    expect(telegram.unmodified).toBe(before);
  });

  it('sends no edit for a short answer that the draft shows whole', async () => {
    const before = telegram.unmodified;
    const whole = gate();
    model.respond(() => ({ chunks: ['A short answer, shown whole.', whole.promise] }));
    telegram.say(721, 'be short');
    const { id } = await telegram.nextMessage(721);
    whole.resolve();
    await answered(721);
    expect(telegram.unmodified).toBe(before);
    const edits = telegram.calls.filter(
      ({ method, payload }) => method === 'editMessageText' && payload['message_id'] === id,
    );
    expect(edits).toEqual([]);
  });

  it('shows the next answer behind the last part of the one before', async () => {
    const whole = gate();
    const parts = Array.from({ length: 5 }, (_, n) =>
      `part-${n} ${'lorem ipsum '.repeat(300)}`.trim(),
    );
    model.respond(({ lastUserText }) => ({
      chunks: lastUserText.includes('long')
        ? [parts.join('\n\n')]
        : ['The next answer ', whole.promise, 'ends.'],
    }));
    telegram.say(722, 'a long one');
    await telegram.waitFor(() =>
      telegram.chat(722).messages.some(({ text }) => text.includes('part-0')),
    );
    telegram.say(722, 'and the next');
    const shown = () => telegram.chat(722).messages.filter(({ from }) => from === 'bot');
    await telegram.waitFor(() => shown().some(({ text }) => text.startsWith('The next answer')));
    whole.resolve();
    await telegram.waitFor(() => shown().some(({ text }) => text.endsWith('ends.')));
    expect(shown().map(({ text }) => text)).toEqual([...parts, 'The next answer ends.']);
    expect(shown().at(-1)?.edits).toBeGreaterThan(0);
  });

  it('sends the beginning of an answer without end, and the rest as a file', async () => {
    const whole = Array.from({ length: 20_000 }, (_, n) => `line ${n}`).join('\n');
    model.respond(() => ({ chunks: [whole] }));
    telegram.say(723, 'write without end');
    const sent = () => telegram.chat(723).messages.filter(({ from }) => from === 'bot');
    const last = await telegram.waitFor(
      () => sent().find(({ file }) => file !== undefined),
      60_000,
    );
    const text = sent()
      .slice(0, -1)
      .map((one) => one.text)
      .join('\n');
    const [beginning, note] = text.split('\n(This answer has ');
    expect(note).toMatch(
      /^\d+ characters and is too long for a chat: the rest is in answer-rest.md\.\)$/,
    );
    expect(last.file?.name).toBe('answer-rest.md');
    expect(`${beginning}\n${last.file?.content}`.replace(/\n+/g, '\n')).toBe(whole);
    expect(sent().length).toBeLessThan(14);
  });

  it('sends no further part after /stop', async () => {
    const parts = Array.from({ length: 8 }, (_, n) =>
      `part-${n} ${'lorem ipsum '.repeat(300)}`.trim(),
    );
    model.respond(() => ({ chunks: [parts.join('\n\n')] }));
    telegram.say(724, 'a long one');
    const texts = () =>
      telegram.chat(724).messages.flatMap(({ from, text }) => (from === 'bot' ? [text] : []));
    await telegram.waitFor(() => texts().length >= 2);
    telegram.say(724, '/stop');
    await telegram.waitFor(() =>
      texts().some((text) => text.startsWith('Stopped. 1 answer no longer sent.')),
    );
    model.respond(echo);
    telegram.say(724, 'go on with nonce-next');
    await telegram.waitFor(() => texts().at(-1) === 'nonce-next');
    const sent = texts().filter((text) => text.startsWith('part-'));
    expect(sent).toEqual(parts.slice(0, sent.length));
    expect(sent.length).toBeLessThan(parts.length);
  });

  it('stops an answer under way and says so', async () => {
    model.respond(() => ({ chunks: ['never ending ', new Promise(() => undefined)] }));
    const asked = model.requests.length;
    telegram.say(705, 'go on for ever');
    await model.received(asked + 1);
    telegram.say(705, '/stop');
    const stopped = await telegram.waitFor(() =>
      telegram.chat(705).messages.find(({ text }) => text.includes('Stopped')),
    );
    expect(stopped.from).toBe('bot');
    model.respond(echo);
    telegram.say(705, 'still there? nonce-alive');
    await telegram.waitFor(() =>
      telegram
        .chat(705)
        .messages.find(({ from, text }) => from === 'bot' && /^nonce-alive/.test(text)),
    );
    const question = telegram.chat(705).messages.find(({ text }) => text === 'go on for ever');
    telegram.say(705, '/why', question === undefined ? {} : { replyTo: question });
    const why = /^Your message of .*: I was stopped while I worked on it\./;
    await telegram.waitFor(() => telegram.chat(705).messages.find(({ text }) => why.test(text)));
  });

  it('lets a message that comes during an answer join it', async () => {
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const before = model.requests.length;
    model.script({ toolCalls: [{ name: 'time', arguments: {} }], gate }, echo);
    telegram.say(706, 'what time is it nonce-t1');
    await model.received(before + 1);
    telegram.say(706, 'and by the way nonce-t2');
    const offered = telegram.waitFor(() => telegram.unconfirmed.length === 0);
    await offered;
    release();
    await telegram.waitFor(() =>
      telegram
        .chat(706)
        .messages.find(({ from, text }) => from === 'bot' && text.includes('nonce-t2')),
    );
    expect(model.requests.length - before).toBe(2);
  });

  it('sends a stranger nothing, asks the model nothing and lists who knocked', async () => {
    const before = model.requests.length;
    telegram.say({ id: UNKNOWN_SENDER, first_name: 'Eve' }, 'let me in nonce-eve');
    await telegram.waitFor(() => telegram.unconfirmed.length === 0);
    telegram.say(OWNER, 'after nonce-after');
    await telegram.waitFor(() =>
      telegram.chat(OWNER).messages.find(({ text }) => text === 'nonce-after'),
    );
    expect(telegram.chat(UNKNOWN_SENDER).messages.filter(({ from }) => from === 'bot')).toEqual([]);
    expect(model.requests.slice(before).map(({ lastUserText }) => lastUserText)).toEqual([
      'after nonce-after',
    ]);
    expect(await world.nanobot('pair', 'list')).toContain('701');
    await world.nanobot('pair', 'approve', 'telegram', '701');
    expect((await telegram.nextMessage(UNKNOWN_SENDER)).text).toBe('nonce-eve');
    telegram.say(UNKNOWN_SENDER, 'now please nonce-welcome');
    expect((await telegram.nextMessage(UNKNOWN_SENDER)).text).toBe('nonce-welcome');
  });

  it('tells the person in words why the model did not answer', async () => {
    model.respond(() => ({ fault: { kind: 'status', status: 401 } }));
    telegram.say(707, 'hello?');
    const notice = await telegram.nextMessage(707);
    expect(notice.text).toMatch(/key/i);
    expect(notice.text).not.toContain(MODEL_KEY);
    telegram.say(707, '/why');
    const why = await telegram.nextMessage(707);
    expect(why.text).toMatch(/: I could not do more than I told you then\./);
  });

  it('keeps Markdown readable and every character of it', async () => {
    model.respond(() => say('**bold** and `a < b` and\n\n```js\nif (a && b) {}\n```'));
    telegram.say(708, 'markdown please');
    const answer = await telegram.nextMessage(708);
    expect(answer.text).toContain('if (a && b) {}');
    expect(answer.text).toContain('a < b');
    expect(answer.entities.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['bold', 'code', 'pre']),
    );
  });

  it('tells the life of a message', async () => {
    expect(await world.nanobot('trace', 'last')).toMatch(/telegram/);
  });

  it('takes a changed allow list and keeps the old one when the file is broken', async () => {
    const config = JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));
    await home.writeConfig({ ...config, nonsense: true });
    await gateway.printed(/nonsense/);
    telegram.say(OWNER, 'nonce-stillworks');
    await telegram.waitFor(() =>
      telegram
        .chat(OWNER)
        .messages.find(({ from, text }) => from === 'bot' && text === 'nonce-stillworks'),
    );
    config.channels.telegram.allowFrom.push('709');
    await home.writeConfig(config);
    await gateway.printed(/configuration is in force/);
    telegram.say(709, 'nonce-newcomer');
    expect((await telegram.nextMessage(709)).text).toBe('nonce-newcomer');
  });

  it('refuses a second gateway in the same home with its own exit code', async () => {
    const { code, stdout, stderr } = await nanobot('gateway');
    expect(code).toBe(4);
    expect(stdout + stderr).toMatch(/already uses/);
  });

  it('leaves at Ctrl+C and keeps secrets and texts out of its log', async () => {
    expect(await gateway.stop()).toBe(0);
    const log = await home.logs();
    expect(log).toContain('gateway stopped');
    expect(log).not.toContain(MODEL_KEY);
    expect(log).not.toContain(telegram.token);
    expect(log).not.toContain('nonce-hello');
    const state = await readFile(join(home.path, 'gateway.json'), 'utf8').catch(() => 'gone');
    expect(state).toBe('gone');
  });
});
