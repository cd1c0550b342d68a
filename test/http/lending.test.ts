// A process beside the gateway has its model calls counted in the gateway's budgets: before each of them,
// to its end, and at worst where that end is never told.

import { expect, it } from 'vitest';
import type { CallEnd, PlannedCall, SpendingGuard } from '../../src/agent/agent.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import { LentSpending } from '../../src/labs/eval/spending.ts';
import { HTTP_TOKEN, startHttp } from './http-rig.ts';

const CALL: PlannedCall = {
  payer: {
    chat: { channel: channelName('eval'), account: DEFAULT_ACCOUNT, chat: chatId('hanoi') },
    sender: { kind: 'system', source: 'webhook' },
  },
  ...{ role: 'eval', model: 'openai/sim', base: 'http://127.0.0.1:1/v1' },
  ...{ inputTokens: 100, outputTokens: 50 },
};
const DONE: CallEnd = {
  kind: 'finished',
  usage: { inputTokens: 90, outputTokens: 9, cachedTokens: 0 },
  answerTokens: 9,
};
const never = new AbortController().signal;

async function createLender(answer?: SpendingGuard['reserve']) {
  const asked: PlannedCall[] = [];
  const ends: CallEnd[] = [];
  const told: (() => void)[] = [];
  const http = await startHttp({
    spending: {
      reserve: async (call, signal) => {
        asked.push(call);
        if (answer !== undefined) return answer(call, signal);
        const settle = (end: CallEnd) => {
          ends.push(end);
          for (const tell of told.splice(0)) tell();
        };
        return { kind: 'reserved', outputTokens: call.outputTokens - 10, settle };
      },
    },
  });
  const settled = new Promise<void>((resolve) => told.push(resolve));
  const lent = new LentSpending({ address: http.address, token: HTTP_TOKEN });
  return { http, lent, asked, ends, settled };
}

it('counts each call before it is made, and once to its end', async () => {
  const { http, lent, asked, ends } = await createLender();
  await using _http = http;
  const calls = await Promise.all([1, 2].map(() => lent.reserve(CALL, never)));
  const failed: CallEnd = {
    ...{ kind: 'failed', failure: { kind: 'timeout', stage: 'idle' }, answerTokens: 3 },
  };
  for (const [nth, call] of calls.entries()) {
    if (call.kind === 'refused') throw new Error(call.text);
    expect(call.outputTokens).toBe(40);
    call.settle(nth === 0 ? DONE : failed);
    call.settle(DONE);
  }
  await lent[Symbol.asyncDispose]();
  const counted = { ...CALL, payer: { ...CALL.payer, isUnseen: true } };
  expect(asked).toEqual([counted, counted]);
  expect(ends.toSorted((a, b) => b.answerTokens - a.answerTokens)).toEqual([DONE, failed]);
});

it('passes on why a call must not be made, and that nobody answers any more', async () => {
  const refusal = { kind: 'refused', text: 'It stays at home.', because: 'local_only' } as const;
  const { http, lent } = await createLender(async () => refusal);
  expect(await lent.reserve(CALL, never)).toEqual(refusal);
  await http.close();
  expect(await lent.reserve(CALL, never)).toMatchObject({
    kind: 'refused',
    text: expect.stringContaining('lost the connection to the gateway'),
  });
});

it('settles a call at worst where whoever made it is gone', async () => {
  const { http, ends, settled } = await createLender();
  await using _http = http;
  const gone = new AbortController();
  const { payer, ...call } = CALL;
  const response = await fetch(new URL('/api/model-calls', http.address), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${HTTP_TOKEN}` },
    body: JSON.stringify({ ...call, chat: payer.chat }),
    signal: gone.signal,
  });
  const reader = response.body?.getReader();
  for (let text = ''; !text.includes('reserved'); ) {
    text += new TextDecoder().decode((await reader?.read())?.value);
  }
  expect(ends).toEqual([]);
  gone.abort();
  await settled;
  expect(ends).toEqual([{ kind: 'finished', answerTokens: 40 }]);
});

it('waits no longer for room than whoever asks', async () => {
  const asking = Promise.withResolvers<AbortSignal>();
  const { http, lent } = await createLender((_call, signal) => {
    asking.resolve(signal);
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  });
  await using _http = http;
  const stopped = new AbortController();
  const reserved = lent.reserve(CALL, stopped.signal);
  const there = await asking.promise;
  const ended = new Promise((resolve) => there.addEventListener('abort', resolve));
  stopped.abort(new Error('stopped'));
  await expect(reserved).rejects.toThrow('stopped');
  await ended;
});

it('counts for holders of the token alone, and only what is a call', async () => {
  const { http, asked } = await createLender();
  await using _http = http;
  const { payer, ...call } = CALL;
  const body = { ...call, chat: payer.chat };
  const path = '/api/model-calls';
  const { code } = JSON.parse((await http.post('/api/links', {})).body);
  const { session } = JSON.parse((await http.post('/api/login', { code })).body);
  const asPage = { authorization: `Bearer ${session}` };
  expect((await http.post(path, body, asPage)).status).toBe(403);
  expect((await http.post(path, body, { authorization: 'Bearer wrong' })).status).toBe(401);
  for (const wrong of [{}, { ...body, inputTokens: -1 }, { ...body, payer }]) {
    expect((await http.post(path, wrong)).status).toBe(400);
  }
  const id = '00000000-0000-4000-8000-000000000000';
  expect((await http.post(`${path}/${id}`, DONE)).status).toBe(404);
  expect((await http.post(`${path}/${id}`, DONE, asPage)).status).toBe(403);
  expect(asked).toEqual([]);
});
