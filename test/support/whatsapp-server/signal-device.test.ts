// The Signal endpoints of the WhatsApp server's persons, between themselves.

import { describe, expect, it } from 'vitest';
import { SignalDevice } from './signal-device.ts';

const ANN = '111@lid';
const BEN = '222:7@lid';
const GROUP = '333@g.us';

async function acquainted(): Promise<{ ann: SignalDevice; ben: SignalDevice }> {
  const ann = new SignalDevice();
  const ben = new SignalDevice();
  await ann.startSession(BEN, ben.bundle());
  return { ann, ben };
}

describe('a Signal device', () => {
  it('opens a session with a bundle and is answered in it', async () => {
    const { ann, ben } = await acquainted();
    const first = await ann.encrypt(BEN, { conversation: 'hello' });
    expect(first.type).toBe('pkmsg');
    expect((await ben.decrypt(ANN, first)).conversation).toBe('hello');
    const answer = await ben.encrypt(ANN, { conversation: 'hi' });
    expect(answer.type).toBe('msg');
    expect((await ann.decrypt(BEN, answer)).conversation).toBe('hi');
    expect((await ann.encrypt(BEN, { conversation: 'more' })).type).toBe('msg');
  });

  it('refuses the same ciphertext twice', async () => {
    const { ann, ben } = await acquainted();
    const sealed = await ann.encrypt(BEN, { conversation: 'once' });
    await ben.decrypt(ANN, sealed);
    await expect(ben.decrypt(ANN, sealed)).rejects.toThrow();
  });

  it('cannot read a known peer after forgetting the session, and can after a new one', async () => {
    const { ann, ben } = await acquainted();
    await ben.decrypt(ANN, await ann.encrypt(BEN, { conversation: 'one' }));
    await ann.decrypt(BEN, await ben.encrypt(ANN, { conversation: 'two' }));
    await ben.forgetSession(ANN);
    const lost = await ann.encrypt(BEN, { conversation: 'three' });
    await expect(ben.decrypt(ANN, lost)).rejects.toThrow('No session record');
    await ann.startSession(BEN, ben.bundle());
    const again = await ann.encrypt(BEN, { conversation: 'three' });
    expect((await ben.decrypt(ANN, again)).conversation).toBe('three');
  });

  it('reads a group once it has the sender key', async () => {
    const { ann, ben } = await acquainted();
    const sealed = await ann.encryptForGroup(GROUP, ANN, { conversation: 'all of you' });
    await expect(ben.decryptFromGroup(GROUP, ANN, sealed.ciphertext)).rejects.toThrow();
    await ben.learnSenderKey(ANN, {
      groupId: GROUP,
      axolotlSenderKeyDistributionMessage: sealed.senderKey,
    });
    const next = await ann.encryptForGroup(GROUP, ANN, { conversation: 'again' });
    expect((await ben.decryptFromGroup(GROUP, ANN, next.ciphertext)).conversation).toBe('again');
  });

  it('lets calls at the same time take turns, so that no session is torn', async () => {
    const { ann, ben } = await acquainted();
    const texts = Array.from({ length: 20 }, (_, n) => `text ${n}`);
    const sealed = await Promise.all(texts.map((text) => ann.encrypt(BEN, { conversation: text })));
    const read = await Promise.all(sealed.map((one) => ben.decrypt(ANN, one)));
    expect(read.map((message) => message.conversation)).toEqual(texts);
  });

  it('prints nothing of its sessions, and leaves other output alone', async () => {
    const before = console.info;
    const printed: unknown[] = [];
    console.info = (...args: unknown[]) => void printed.push(...args);
    try {
      const { ann, ben } = await acquainted();
      await ann.startSession(BEN, ben.bundle());
      await ann.startSession(BEN, ben.bundle());
      console.info('still heard');
      expect(printed).toEqual(['still heard']);
    } finally {
      console.info = before;
    }
  });
});
