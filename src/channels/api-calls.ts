// What channels share that call an API of their platform over HTTP and send an answer in parts.

import { BACKOFF, notSent } from '../kernel/message/errors.ts';
import type { NativeId } from '../kernel/message/ids.ts';
import type { Choice } from '../kernel/message/message.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';

/** Why a call failed. `Detail`: what else a refusal of the platform says. */
export type CallFailure<Detail = object> =
  /** The platform answered with a refusal. */
  | ({
      readonly kind: 'refused';
      readonly code: number;
      readonly description: string;
      readonly retryAfterMs?: number | undefined;
    } & Detail)
  /** The request was never written: name not found, connection refused, TLS failed. */
  | { readonly kind: 'not_reached'; readonly reason: string }
  /** The request was written and no usable response came. */
  | { readonly kind: 'unanswered'; readonly reason: string };

export const REPEAT_MARK = t`(sent again: the first try was not confirmed)\n\n`;

/** If all labels together are longer, the buttons stand below each other. */
const ROW_CHARS = 32;

/** The rows of the buttons below a text. */
export function buttonRows<Button>(
  choices: readonly Choice[],
  buttonOf: (choice: Choice) => Button,
): Button[][] {
  const buttons = choices.map(buttonOf);
  const isShort = choices.map(({ label }) => label).join('').length <= ROW_CHARS;
  return isShort ? [buttons] : buttons.map((button) => [button]);
}

/** Removes each part, also after one that cannot be removed. @throws the last failure */
export async function eachPart(
  parts: readonly NativeId[],
  remove: (part: NativeId) => Promise<void>,
): Promise<void> {
  let failure: unknown;
  for (const part of parts) {
    await remove(part).catch((error: unknown) => {
      failure = error;
    });
  }
  if (failure !== undefined) throw failure;
}

/** Between two parts of an answer. @throws DeliveryError where the channel ends */
export async function pauseBetweenParts(ms: number, signal: AbortSignal, clock: Clock) {
  await clock.sleep(ms, signal).catch(() => undefined);
  if (signal.aborted) throw notSent(t`stopped between two parts`, BACKOFF, 'channel_stopped');
}
