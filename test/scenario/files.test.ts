// Files between a person and the agent, through the whole program.

import { writeFile } from 'node:fs/promises';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { callTools, echo, say } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const ALICE = 700;
const BOB = 701;

const world = await startTelegramWorld({
  respond: echo,
  config: { coalesce: { quietMs: 50 } },
  // On a busy machine what a tool is doing would be the message that came.
  channel: { allowFrom: [String(ALICE), String(BOB)], streaming: false },
});
const { telegram, model } = world;

afterEach(() => expect(telegram.violations).toEqual([]));

afterAll(() => world[Symbol.asyncDispose]());

const lastWords = () => model.requests.at(-1)?.lastUserText ?? '';

describe('files sent to the agent', () => {
  it('are told with the words beside them, fetched again where a path had expired', async () => {
    const lost = telegram.fail({
      method: 'file',
      fault: { kind: 'error', code: 404, description: 'Not Found' },
    });
    telegram.sendFile(ALICE, {
      field: 'document',
      content: Buffer.from('some text'),
      caption: 'read this nonce-file',
      extra: { file_name: 'notes.txt' },
    });
    expect((await telegram.nextMessage(ALICE)).text).toBe('nonce-file');
    expect(lost.hits).toBe(1);
    expect(lastWords()).toContain('[file "notes.txt" (9 bytes)');
    expect(lastWords()).toContain('read this nonce-file');
  });

  it('that cannot be read are told with the reason, beside those that can', async () => {
    telegram.sendAlbum(BOB, [
      { field: 'video', content: { size: 21_000_000 }, caption: 'see nonce-album' },
      { field: 'photo', content: Buffer.alloc(0) },
      { field: 'photo', content: Buffer.from('picture') },
    ]);
    expect((await telegram.nextMessage(BOB)).text).toBe('nonce-album');
    expect(lastWords()).toContain(
      '[video (21 MB): could not be read, its 21 MB are more than the 20 MB that Telegram lets a bot download]',
    );
    expect(lastWords()).toContain('[photo (0 bytes): could not be read, it is empty]');
    expect(lastWords()).toContain('[photo (7 bytes)');
  });

  it('that were not fetched when the process died are fetched by the next one', async () => {
    const before = telegram.calls.length;
    telegram.fail({ method: 'file', fault: { kind: 'hang', stage: 'before' } });
    telegram.sendFile(ALICE, {
      field: 'photo',
      content: Buffer.from('pixels'),
      caption: 'nonce-again',
    });
    await telegram.waitFor(() =>
      telegram.calls.slice(before).some(({ method }) => method === 'file'),
    );
    await telegram.waitFor(() => telegram.unconfirmed.length === 0);
    await world.restart();
    expect((await telegram.nextMessage(ALICE)).text).toBe('nonce-again');
    expect(lastWords()).toContain('[photo (6 bytes)');
  });
});

describe('files sent by the agent', () => {
  it('arrive once, with their caption, before the answer', async () => {
    await writeFile(world.file('report.txt'), 'the report');
    model.respond((request) =>
      request.toolResults.length > 0
        ? say('done nonce-sent')
        : callTools({
            name: 'send_file',
            arguments: { paths: ['report.txt'], caption: 'As you asked.' },
          }),
    );
    telegram.say(ALICE, 'send me the report');
    const file = await telegram.nextMessage(ALICE);
    expect(file).toMatchObject({ text: 'As you asked.', file: { name: 'report.txt' } });
    expect(file.file?.content.toString()).toBe('the report');
    expect((await telegram.nextMessage(ALICE)).text).toBe('done nonce-sent');
  });
});

describe('a file that was being sent when the process died', () => {
  it('comes once more and says so, since it is not known whether it arrived', async () => {
    await writeFile(world.file('late.txt'), 'late');
    model.respond((request) =>
      request.toolResults.length > 0
        ? say('done nonce-late')
        : callTools({ name: 'send_file', arguments: { paths: ['late.txt'] } }),
    );
    telegram.fail({ method: 'sendDocument', fault: { kind: 'hang', stage: 'after' } });
    telegram.say(BOB, 'send it');
    expect(await telegram.nextMessage(BOB)).toMatchObject({ file: { name: 'late.txt' }, text: '' });
    await world.restart();
    expect(await telegram.nextMessage(BOB)).toMatchObject({
      file: { name: 'late.txt' },
      text: '(sent again: the first try was not confirmed)',
    });
    expect((await telegram.nextMessage(BOB)).text).toBe('done nonce-late');
    expect(
      telegram.chat(BOB).messages.filter(({ file }) => file?.name === 'late.txt'),
    ).toHaveLength(2);
  });
});
