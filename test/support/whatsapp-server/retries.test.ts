// Messages that one side could not read, or that come twice: an unmodified Baileys and the people of
// the server ask each other again.

import { afterAll, describe, expect, test } from 'vitest';
import { linkedAuth } from './baileys-client.ts';
import { acquainted, chatWith, eventually, Listener, silenceConsole } from './listener.ts';
import { trustedWhatsAppServer } from './trusted.ts';

const server = await trustedWhatsAppServer();
const silence = silenceConsole();

afterAll(() => silence[Symbol.dispose]());

describe('messages that could not be read', () => {
  test('a contact who lost the session is read after the device asked again', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    await ben.writes('one');
    await client.hears('one');
    await client.says(chatWith(ben), 'two');
    await ben.sees(({ text }) => text === 'two');
    await ben.losesSession();
    const id = await ben.writes('three');
    expect((await client.hears('three')).key.id).toBe(id);
    await client.says(chatWith(ben), 'four');
    await ben.sees(({ text }) => text === 'four');
  });

  test('a contact who cannot read the device asks again and gets it under the same id', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    await ben.writes('one');
    await client.hears('one');
    await client.says(chatWith(ben), 'two');
    await ben.sees(({ text }) => text === 'two');
    await ben.losesSession();
    const id = await client.says(chatWith(ben), 'three');
    expect(await ben.sees(({ text }) => text === 'three')).toMatchObject({ id, arrivals: 1 });
    expect(ben.undecryptable).toBe(1);
  });

  test('a corrupted ciphertext is asked for again', async () => {
    const { phone, ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    await ben.writes('one');
    await client.hears('one');
    server.fault({ direction: 'down', stanza: 'message', effect: { kind: 'corrupt' } });
    const id = await ben.writes('two');
    expect((await client.hears('two')).key.id).toBe(id);
    await eventually(() => expect(phone.queued).toBe(0));
  });

  test('a message asked for again is sent again, with keys from the second time on', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    const id = await client.says(chatWith(ben), 'hello');
    await ben.sees(({ arrivals }) => arrivals === 1);
    for (const arrivals of [2, 3]) {
      await ben.asksAgain(id);
      await ben.sees((message) => message.arrivals === arrivals);
    }
    expect(ben.seen).toHaveLength(1);
    await ben.writes('thank you');
    await client.hears('thank you');
  });

  test('a stanza delivered twice is asked for again by the device, and comes with its id', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    await ben.writes('opening');
    await client.hears('opening');
    await client.says(chatWith(ben), 'answer');
    await ben.sees(() => true);
    const id = await ben.writes('once');
    await client.hears('once');
    await ben.replay(id);
    expect((await client.hears('once', 2)).key.id).toBe(id);
  });

  test('a message encrypted anew is read once more', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    const id = await ben.writes('again');
    await client.hears('again');
    await ben.sendAgain(id);
    expect((await client.hears('again', 2)).key.id).toBe(id);
  });

  test('a stanza of the device that comes twice is one message that arrived twice', async () => {
    const { ben, auth } = await acquainted(server);
    await using client = await new Listener(server, auth).open();
    server.fault({ direction: 'up', stanza: 'message', effect: { kind: 'duplicate' } });
    await client.says(chatWith(ben), 'twice');
    await ben.sees(({ arrivals }) => arrivals === 2);
    expect(ben.seen).toHaveLength(1);
    expect(ben.undecryptable).toBe(0);
  });

  test('a device linked anew is written to in a session of its own', async () => {
    const { phone, ben, auth } = await acquainted(server);
    {
      await using client = await new Listener(server, auth).open();
      await ben.writes('to the first');
      await client.hears('to the first');
    }
    await phone.unlink();
    await using client = await new Listener(server, await linkedAuth(server, phone)).open();
    await ben.writes('to the second');
    await client.hears('to the second');
    await client.says(chatWith(ben), 'from the second');
    await ben.sees(({ text }) => text === 'from the second');
  });
});
