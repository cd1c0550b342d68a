// Erasing the texts of a subagent while its end is being told: neither overwrites the other.

import { join } from 'node:path';
import { expect, it } from 'vitest';
import { HELPERS_SCOPE, HelperBook } from '../../src/automation/helper-book.ts';
import { HelperDesk } from '../../src/automation/helper-desk.ts';
import { createHelperForgetting } from '../../src/automation/helper-forgetting.ts';
import { FORGOTTEN } from '../../src/core/forgetting.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/core/ids.ts';
import { sessionKeyOf } from '../../src/core/message.ts';
import { OWNER_TURN } from '../../src/core/notes.ts';
import { ALL_RIGHTS } from '../../src/core/rights.ts';
import { type HelperRun, helperSession } from '../../src/core/subagent.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { openEmbeddedStore } from '../../src/store/embedded.ts';
import { temporaryFolder } from '../sessions/session-folder.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const chat = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const RUN: HelperRun = {
  ...{ id: 'h1', label: 'h1', plan: { kind: 'task', task: 'count' }, depth: 1, attempt: 1 },
  parent: {
    ...{ session: sessionKeyOf(chat), chat, payingChat: chat, payer: {} },
    ...{ rights: ALL_RIGHTS, isTainted: false, person: OWNER_TURN },
  },
  terms: { readOnly: false, prompt: '', tokens: 1000, minutes: 5 },
  ...{ answers: [], startedAt: 0, state: 'running', telling: 'due' },
};
const DONE = { state: 'done', result: 'the password is forty-two', isForeign: false } as const;
const holds = (text: string) => text.includes('password');

/** As far as the promises that are settled carry other work. */
async function pass(steps: number): Promise<void> {
  for (let step = 0; step < steps; step += 1) await undefined;
}

it.each(Array.from({ length: 16 }, (_, lead) => lead))(
  'an erasure that begins %i steps before the end is noted as told keeps the end told and the text erased',
  async (lead) => {
    const clock = createMovableClock(1000);
    const path = join(await temporaryFolder(), 'state.db');
    await using store = await openEmbeddedStore({ path, clock, log });
    const book = new HelperBook(store.scope(HELPERS_SCOPE));
    const forgetting = createHelperForgetting(new HelperBook(store.scope(HELPERS_SCOPE)));
    const erasures: Promise<number>[] = [];
    const bus = {
      async accept(batch: readonly { readonly message: { readonly id: string } }[]) {
        if (batch.some(({ message }) => message.id === 'subagent/h1/end-1')) {
          erasures.push(forgetting.forget([helperSession('h1')], holds));
          await pass(lead);
        }
        return [];
      },
    };
    const desk = new HelperDesk({ book, bus: bus as never, clock, log });
    await desk.begin(RUN);
    await desk.end('h1', DONE);
    expect(await Promise.all(erasures)).toEqual([1]);
    expect(await book.get('h1')).toMatchObject({ result: FORGOTTEN, telling: 'over' });
  },
);
