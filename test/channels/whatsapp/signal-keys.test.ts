// The library's transactions over our keys, whose work may go on after their end.

import { addTransactionCapability, type SignalDataSet } from '@whiskeysockets/baileys';
import { describe, expect, it } from 'vitest';
import { withTransactionsThatEnd } from '../../../src/channels/whatsapp/signal-keys.ts';
import { createBaileysLogger } from '../../../src/channels/whatsapp/transport.ts';
import { systemClock } from '../../../src/lib/time/clock.ts';
import { createMemoryHost } from '../../support/memory-host.ts';

function transactions() {
  const stored: SignalDataSet[] = [];
  const keys = addTransactionCapability(
    { get: async () => ({}), set: async (data) => void stored.push(data) },
    createBaileysLogger(createMemoryHost(systemClock)),
    { maxCommitRetries: 1, delayBetweenTriesMs: 1 },
  );
  return { stored, keys: withTransactionsThatEnd(keys) };
}

const list = (person: string): SignalDataSet => ({ 'device-list': { [person]: ['0'] } });

describe('a transaction of the library', () => {
  it('writes at its end what its work wrote, also in transactions inside of it', async () => {
    const { stored, keys } = transactions();
    const unstored = await keys.transaction(async () => {
      await keys.set(list('ann'));
      await keys.transaction(() => Promise.resolve(keys.set(list('ben'))), 'inner');
      await keys.set(list('cem'));
      expect(keys.isInTransaction()).toBe(true);
      return stored.length;
    }, 'outer');
    expect(unstored).toBe(0);
    expect(stored).toEqual([{ 'device-list': { ann: ['0'], ben: ['0'], cem: ['0'] } }]);
    expect(keys.isInTransaction()).toBe(false);
  });

  it('writes nothing if its work fails', async () => {
    const { stored, keys } = transactions();
    const failing = keys.transaction(async () => {
      await keys.set(list('ann'));
      throw new Error('no');
    }, 'outer');
    await expect(failing).rejects.toThrow('no');
    expect(stored).toEqual([]);
  });

  it('leaves alone what its work began and did not await', async () => {
    const { stored, keys } = transactions();
    const ended = Promise.withResolvers<void>();
    const { late } = await keys.transaction(async () => {
      const late = ended.promise.then(async () => {
        expect(keys.isInTransaction()).toBe(false);
        await keys.set(list('ann'));
        await keys.transaction(() => Promise.resolve(keys.set(list('ben'))), 'later');
      });
      return { late };
    }, 'outer');
    ended.resolve();
    await late;
    expect(stored).toEqual([list('ann'), list('ben')]);
  });
});
