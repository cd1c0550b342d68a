// Erasing the texts of a subagent while its end is being told: neither overwrites the other.

import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  createSubagentErasure,
  openSubagents,
} from '../../src/features/subagents/personal-data.ts';
import { type SubagentRun, subagentSession } from '../../src/features/subagents/rules/subagent.ts';
import { createSubagentService } from '../../src/features/subagents/subagent-service.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import { sessionKeyOf } from '../../src/kernel/message/message.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { FORGOTTEN } from '../../src/kernel/sessions/rules/forgetting.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const chat = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const RUN: SubagentRun = {
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

it.each(Array.from({ length: 6 }, (_, lead) => lead))(
  'an erasure that begins %i steps before the end is noted as told keeps the end told and the text erased',
  async (lead) => {
    const clock = createMovableClock(1000);
    const path = join(await temporaryFolder(), 'state.db');
    await using store = await openEmbeddedStore({ path, clock, log });
    const subagents = openSubagents(createRows(store));
    const forgetting = createSubagentErasure(subagents);
    const erasures: Promise<number>[] = [];
    const bus = {
      async accept(batch: readonly { readonly message: { readonly id: string } }[]) {
        if (batch.some(({ message }) => message.id === 'subagent/h1/end-1')) {
          erasures.push(forgetting.forget([subagentSession('h1')], holds));
          await pass(lead);
        }
        return [];
      },
    };
    const service = createSubagentService({ subagents, bus: bus as never, clock, log });
    await service.begin(RUN);
    await service.end('h1', DONE);
    expect(await Promise.all(erasures)).toEqual([1]);
    expect(await subagents.runs.get('h1')).toMatchObject({ result: FORGOTTEN, telling: 'over' });
  },
);
