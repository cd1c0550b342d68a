// Logins as a person sees them: each a list of steps that ends in `done` or `failed`. A new login
// ends the previous one. The link connects, and cleans up unfinished pairings.

import type { WASocket } from '@whiskeysockets/baileys';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import { onAbort } from '../../lib/time/clock.ts';
import type { LoginOptions, LoginStep } from '../channel.ts';
import type { ConnectionEvents } from './connection.ts';
import { TRY_AGAIN } from './rules/endings.ts';
import { phoneDigits } from './rules/jid.ts';

export type LoginService = ReturnType<typeof createLoginService>;

export function createLoginService(deps: {
  /** From the settings; '' if none is set. */
  readonly phoneNumber: string;
  /** A login began or was given up. */
  onChange(): void;
}) {
  let newest: LoginAttempt | undefined;
  const giveUp = (attempt: LoginAttempt | undefined, reason: string) => {
    if (attempt === undefined || attempt.isOver) return;
    attempt.giveUp(reason);
    deps.onChange();
  };

  async function* begin(options: LoginOptions, signal: AbortSignal): AsyncGenerator<LoginStep> {
    const written = options.phoneNumber ?? deps.phoneNumber;
    const number = phoneDigits(written);
    if (written !== '' && number === undefined) return yield badNumber;
    const attempt = new LoginAttempt(number);
    const earlier = newest;
    newest = attempt;
    giveUp(earlier, t`another login was started`);
    const cancel = () => giveUp(attempt, t`the login was cancelled`);
    using _cancelling = onAbort(signal, cancel);
    try {
      if (!signal.aborted) deps.onChange();
      yield* attempt.steps();
    } finally {
      cancel();
      await attempt.ended();
    }
  }

  return {
    begin,
    /** The current login. */
    get current(): LoginAttempt | undefined {
      return newest?.isOver || newest?.signal.aborted ? undefined : newest;
    },
    /** Ends the current login. */
    close: (reason: string) => giveUp(newest, reason),
  };
}

const badNumber: LoginStep = {
  kind: 'failed',
  reason: t`the phone number is not an international number`,
  remedy: t`Use digits only, with the country code, e.g. 491511234567.`,
};

/** One login: the steps shown to a person, and how it ends. */
export class LoginAttempt {
  /** Digits; undefined: QR only. */
  readonly phoneNumber: string | undefined;
  readonly #controller = new AbortController();
  readonly #queue: LoginStep[] = [];
  readonly #over = Promise.withResolvers<void>();
  #more = Promise.withResolvers<void>();
  #isHeld = false;
  #isConfirmed = false;
  #isOver = false;

  constructor(phoneNumber: string | undefined) {
    this.phoneNumber = phoneNumber;
  }

  /** Aborted when the person gave up or another login began; the reason says which. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The phone confirmed: a later failure is one after the pairing. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  confirmed(): void {
    this.#isConfirmed = true;
    this.show({ kind: 'progress', text: t`The phone confirmed the link; logging in.` });
  }

  /** Keeps an aborted login open until `release`: an unfinished pairing is to be cleaned up. */
  hold(): void {
    this.#isHeld = true;
  }

  /** Fails the login if it was aborted meanwhile, or with `trouble`. */
  release(trouble: { readonly reason: string; readonly remedy: string } | undefined): void {
    this.#isHeld = false;
    const { aborted, reason } = this.signal;
    if (aborted) this.fail(String(reason), TRY_AGAIN);
    else if (trouble !== undefined) this.fail(trouble.reason, trouble.remedy);
  }

  show(step: LoginStep): void {
    if (this.#isOver) return;
    this.#isOver = step.kind === 'done' || step.kind === 'failed';
    this.#queue.push(step);
    this.#more.resolve();
    this.#more = Promise.withResolvers();
    if (this.#isOver) this.#over.resolve();
  }

  fail(reason: string, remedy: string): void {
    this.show({ kind: 'failed', reason, remedy });
  }

  giveUp(reason: string): void {
    this.#controller.abort(reason);
    if (!this.#isHeld) this.fail(reason, TRY_AGAIN);
  }

  /** Every step as it comes; ending the iteration early does not abort the login. */
  async *steps(): AsyncGenerator<LoginStep> {
    for (;;) {
      const step = this.#queue.shift();
      if (step !== undefined) yield step;
      else if (this.#isOver) return;
      else await this.#more.promise;
    }
  }

  ended(): Promise<void> {
    return this.#over.promise;
  }
}

// What a person who links an account sees until the phone confirms: the QR code and the 8
// characters that can be typed on the phone instead.

/** `attempt` undefined: no login is under way. */
export function pairingEvents(
  attempt: LoginAttempt | undefined,
  deps: { readonly log: Logger; socket(): WASocket },
): Pick<ConnectionEvents, 'onQr' | 'onPaired'> {
  let isOffered = false;
  return {
    onQr(qr, expiresAt) {
      if (attempt === undefined) return;
      attempt.show({ kind: 'show_qr', qr, expiresAt });
      if (!isOffered) offerCode(deps.socket(), attempt, deps.log);
      isOffered = true;
    },
    onPaired: () => attempt?.confirmed(),
  };
}

/** Requests a code if the attempt has a number. Without one the QR code remains. */
function offerCode(socket: WASocket, attempt: LoginAttempt, log: Logger): void {
  const { phoneNumber } = attempt;
  if (phoneNumber === undefined) return;
  const withoutCode = () =>
    attempt.show({
      kind: 'progress',
      text: t`WhatsApp sent no code for +${phoneNumber}. Check the number, or scan the QR code.`,
    });
  const answer = answerTo(socket);
  socket.requestPairingCode(phoneNumber).then(
    async (code) => {
      if (await answer) attempt.show({ kind: 'show_code', code, phoneNumber });
      else withoutCode();
    },
    (error) => {
      log.info('whatsapp pairing code not requested', { error });
      withoutCode();
    },
  );
}

/**
 * Whether WhatsApp accepts the code, which the library generates itself and returns before the
 * server's answer. On a connection that waits for the phone the only other query is the keep-alive.
 */
function answerTo({ ws }: WASocket): Promise<boolean> {
  return new Promise((resolve) => {
    ws.once('CB:iq,type:error', () => resolve(false));
    ws.once('CB:iq,type:result', () => resolve(true));
  });
}
