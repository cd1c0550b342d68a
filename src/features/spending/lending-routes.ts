// Reserves budget for model calls of another process of this home, so that both stay within the
// daily budgets. Requires the token.
//   POST /api/model-calls        {chat, model, ...}; server-sent events: whether it is allowed; a
//                                reservation lasts until the call ends or the client disconnects
//   POST /api/model-calls/<id>   {kind: finished | failed, ...}; 204

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { CallEnd, PlannedCall, SpendingGuard } from '../../agent/agent.ts';
import { Refusal, type RouteHandlers, type RouteRequest, valid } from '../../kernel/http-routes.ts';
import { accountId, channelName, chatId, threadId } from '../../kernel/message/ids.ts';
import { t } from '../../lib/texts.ts';
import { onAbort } from '../../lib/time/clock.ts';

/** The response to the other process. */
export const lentAnswer = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('refused'),
    text: z.string(),
    because: z.literal('local_only').exactOptional(),
  }),
  z.object({ kind: z.literal('reserved'), id: z.string(), outputTokens: z.number() }),
]);

const MAX_TOKENS = 100_000_000;
const MAX_NAME_CHARS = 500;
const tokens = z.int().min(0).max(MAX_TOKENS);
const name = z.string().min(1).max(MAX_NAME_CHARS);

const callBody = z.strictObject({
  chat: z.strictObject({
    channel: name.transform(channelName),
    account: name.transform(accountId),
    chat: name.transform(chatId),
    thread: name.transform(threadId).exactOptional(),
  }),
  role: name,
  model: name,
  base: name.exactOptional(),
  waitedMs: z.number().min(0).exactOptional(),
  countsMoney: z.boolean().exactOptional(),
  inputTokens: tokens,
  outputTokens: tokens,
});

const KINDS = [
  'rate_limited',
  'auth',
  'unknown_model',
  'server',
  'network',
  'context_overflow',
  'rejected',
  'malformed',
  'cancelled',
] as const;
const failure = z.union([
  z.object({ kind: z.enum(KINDS) }),
  z.object({
    kind: z.literal('timeout'),
    stage: z.enum(['first_token', 'idle', 'whole_call']),
  }),
]);
const endBody = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('finished'),
    usage: z
      .strictObject({
        inputTokens: tokens,
        outputTokens: tokens,
        cachedTokens: tokens,
        writtenTokens: tokens.exactOptional(),
      })
      .exactOptional(),
    answerTokens: tokens,
  }),
  z.strictObject({ kind: z.literal('failed'), failure, answerTokens: tokens }),
]);
const endParams = z.object({ id: z.uuid() });

export function lendingRoutes(spending: Pick<SpendingGuard, 'reserve'>) {
  const open = new Map<string, (end: CallEnd) => void>();
  return {
    'POST /api/model-calls'(request) {
      onlyWithToken(request);
      const call = plannedCall(valid(callBody, request.body));
      return { events: (signal) => lent(spending, open, call, signal) };
    },
    'POST /api/model-calls/:id'(request) {
      onlyWithToken(request);
      const { id } = valid(endParams, request.params);
      const settle = open.get(id);
      if (settle === undefined) throw new Refusal(404, 'not_found', t`This call is over.`);
      settle(valid(endBody, request.body));
      return { status: 204 };
    },
  } satisfies RouteHandlers;
}

function onlyWithToken({ hasToken }: RouteRequest): void {
  if (hasToken) return;
  throw new Refusal(403, 'token_needed', t`Only the gateway’s token has calls counted.`);
}

function plannedCall({ chat, ...call }: z.infer<typeof callBody>): PlannedCall {
  const payer = {
    chat,
    sender: { kind: 'system', source: 'webhook' },
    // The owner gets the notice about its budget, because nobody reads that chat.
    isUnseen: true,
  } as const;
  return { ...call, payer };
}

/** Ends with the call; a call whose end is never reported is settled at its worst case. */
async function* lent(
  spending: Pick<SpendingGuard, 'reserve'>,
  open: Map<string, (end: CallEnd) => void>,
  call: PlannedCall,
  signal: AbortSignal,
): AsyncGenerator<z.infer<typeof lentAnswer>, void, void> {
  const reserved = await spending.reserve(call, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  // The client disconnected.
  if (reserved === undefined) return;
  if (reserved.kind === 'refused') {
    yield reserved;
    return;
  }
  const id = randomUUID();
  const { promise: over, resolve } = Promise.withResolvers<CallEnd>();
  const { outputTokens } = reserved;
  const atWorst = () => resolve({ kind: 'finished', answerTokens: outputTokens });
  open.set(id, resolve);
  onAbort(signal, atWorst);
  try {
    yield { kind: 'reserved', id, outputTokens };
    await over;
  } finally {
    atWorst();
    open.delete(id);
    reserved.settle(await over);
  }
}
