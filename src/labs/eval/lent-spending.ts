// The budgets of a gateway that runs in this home, for another process that asks models: each try of a
// call is counted there before it is made. While it lasts a connection stands for it, so that the end of
// this process ends it there too.

import { z } from 'zod';
import type {
  CallEnd,
  PlannedCall,
  Refusal,
  Reservation,
  SpendingGuard,
} from '../../agent/spending.ts';
import { tellGateway } from '../../app/running-gateway.ts';
import { NanobotError } from '../../kernel/message/errors.ts';

export type Lender = { readonly address: string; readonly token: string };

const PATH = '/api/model-calls';
const END_TIMEOUT_MS = 5000;
const GONE = 'the gateway that keeps the budgets does not answer any more';

const answer = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('refused'),
    text: z.string(),
    because: z.literal('local_only').optional(),
  }),
  z.object({ kind: z.literal('reserved'), id: z.string(), outputTokens: z.number() }),
]);

/** Disposing waits until every end was told. */
export class LentSpending implements SpendingGuard, AsyncDisposable {
  readonly #lender: Lender;
  readonly #ending = new Set<Promise<void>>();

  constructor(lender: Lender) {
    this.#lender = lender;
  }

  modelFor(_payer: PlannedCall['payer'], model: string): string {
    return model;
  }

  async reserve(call: PlannedCall, signal: AbortSignal): Promise<Reservation | Refusal> {
    const connection = new AbortController();
    const leave = () => connection.abort(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      const said = await this.#asked(call, connection.signal);
      if (said.kind === 'refused') {
        connection.abort();
        const { text, because } = said;
        return { kind: 'refused', text, ...(because === undefined ? {} : { because }) };
      }
      return this.#reserved(said, connection);
    } catch {
      signal.throwIfAborted();
      return { kind: 'refused', text: GONE };
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ending);
  }

  #reserved(
    { id, outputTokens }: Extract<z.infer<typeof answer>, { readonly kind: 'reserved' }>,
    connection: AbortController,
  ): Reservation {
    let isOpen = true;
    return {
      kind: 'reserved',
      outputTokens,
      settle: (end) => {
        if (!isOpen) return;
        isOpen = false;
        const told: Promise<void> = this.#tell(id, end)
          // Where it cannot be told, the end of the connection tells it at worst.
          .catch(() => undefined)
          .finally(() => {
            connection.abort();
            this.#ending.delete(told);
          });
        this.#ending.add(told);
      },
    };
  }

  async #asked(call: PlannedCall, signal: AbortSignal) {
    const { payer, turnId: _, ...rest } = call;
    const response = await tellGateway(this.#lender, PATH, { ...rest, chat: payer.chat }, signal);
    if (!response.ok || response.body === null) throw new NanobotError('not_lent', GONE);
    return answer.parse(await firstEvent(response.body));
  }

  async #tell(id: string, { drift: _, ...end }: CallEnd): Promise<void> {
    const response = await tellGateway(
      this.#lender,
      `${PATH}/${id}`,
      end,
      AbortSignal.timeout(END_TIMEOUT_MS),
    );
    await response.arrayBuffer();
  }
}

/** The stream stays open behind it. */
async function firstEvent(body: ReadableStream<Uint8Array>): Promise<unknown> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new NanobotError('not_lent', GONE);
    text += decoder.decode(value, { stream: true });
    const found = /^data: (.*)\n\n/m.exec(text)?.[1];
    if (found !== undefined) return JSON.parse(found);
  }
}
