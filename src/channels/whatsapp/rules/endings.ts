// What the end of a WhatsApp connection means and what to do next, with the text for the person:
// one decision table over values.

/** `pairing`: no account is linked yet. `opening`: linked, but this connection never opened. */
import { t } from '../../../lib/texts.ts';

export type WhatsAppPhase = 'pairing' | 'opening' | 'open';

/** Who or what ended the connection. */
export type WhatsAppCause =
  /** `code` and `message` from the library. */
  | { readonly kind: 'closed'; readonly code: number; readonly message: string }
  /** Frames stopped arriving. */
  | { readonly kind: 'silent' }
  /** Frames arrived, but their messages were not processed. */
  | { readonly kind: 'stalled' }
  /** Login, or the wait for a person to pair, took too long. */
  | { readonly kind: 'overdue' }
  /** Changed credentials could not be stored. */
  | { readonly kind: 'unsaved' };

type ClosedByServer = Extract<WhatsAppCause, { readonly kind: 'closed' }>;

export type WhatsAppEnding = {
  readonly cause: WhatsAppCause;
  readonly phase: WhatsAppPhase;
  /** The phone confirmed the pairing during this connection. */
  readonly isPaired: boolean;
  /** There are other credentials, which opened a connection once, to go back to. */
  readonly mayRollBack: boolean;
};

export type WhatsAppVerdict =
  /** At once. */
  | { readonly kind: 'reconnect'; readonly reason: string }
  | {
      readonly kind: 'wait';
      readonly pace: 'backoff' | 'long_backoff';
      readonly reason: string;
      /** The owner gets a notice after this many such endings in a row. */
      readonly alertAfter?: number;
    }
  /** Back to the last credentials that opened a connection, then reconnect at once. */
  | { readonly kind: 'roll_back'; readonly reason: string }
  /** Continues only by a command or a restart; the account stays linked. */
  | { readonly kind: 'stop'; readonly reason: string; readonly remedy: string }
  /** The credentials are worthless: set aside, and the phone has to link again. */
  | { readonly kind: 'relink'; readonly reason: string; readonly remedy: string }
  /** This pairing is over; its unfinished state is cleaned up. */
  | { readonly kind: 'give_up'; readonly reason: string; readonly remedy: string };

export const LINK_REMEDY = t`Run \`nanobot channels login whatsapp\`, or open the web page, and link the phone.`;
export const TRY_AGAIN = t`Run \`nanobot channels login whatsapp\` again.`;

/** A failed handshake is no network problem: reported at once. */
const HANDSHAKE_ALERT = 1;
/** An ending with an unknown cause may be temporary. */
const UNKNOWN_ALERT = 5;

/** Reference section 4, "Endings"; cases W09 to W13. */
export function judgeEnding(ending: WhatsAppEnding): WhatsAppVerdict {
  const { cause, phase } = ending;
  const isUnpaired = phase === 'pairing' && !ending.isPaired;
  if (cause.kind !== 'closed') return judgeOwnEnding(cause.kind, isUnpaired);
  const refusal = transportTrouble(cause);
  if (refusal !== undefined) return waiting(refusal);
  if (isUnpaired) return judgePairing(cause);
  if (mayBeBadStart(ending, cause.code)) {
    return { kind: 'roll_back', reason: t`WhatsApp refused the credentials (${cause.code})` };
  }
  return judgeLinked(cause.code);
}

function judgeOwnEnding(
  kind: Exclude<WhatsAppCause['kind'], 'closed'>,
  isUnpaired: boolean,
): WhatsAppVerdict {
  switch (kind) {
    case 'silent':
      return waiting(t`WhatsApp sent nothing for too long`);
    case 'stalled':
      return waiting(t`messages arrived but could not be stored`, UNKNOWN_ALERT);
    case 'unsaved':
      return waiting(t`the credentials could not be stored`, UNKNOWN_ALERT);
    case 'overdue':
      if (isUnpaired) return UNANSWERED;
      return waiting(t`the login to WhatsApp took too long`);
  }
}

/**
 * The websocket was never established or broke: no statement of WhatsApp, whatever HTTP status a
 * proxy in between gave (its 401 must not discard credentials).
 */
function transportTrouble({ message }: { readonly message: string }): string | undefined {
  if (!message.startsWith('WebSocket Error')) return undefined;
  const status = /Unexpected server response: (\d{3})/.exec(message)?.[1];
  // The text of our own ProxyError.
  const proxy = /\((.+ \([\w.]+\.proxy\) .+)\)$/s.exec(message)?.[1];
  const why = proxy ?? (status === undefined ? undefined : `HTTP ${status}`);
  const detail = why === undefined ? '' : ` (${why})`;
  return t`WhatsApp cannot be reached${detail}`;
}

/** Codes that damaged or outdated credentials can cause. */
function mayBeBadStart(ending: WhatsAppEnding, code: number): boolean {
  if (!ending.mayRollBack || ending.phase !== 'opening') return false;
  return code === 400 || code === 401 || code === 500;
}

const lost = waiting(t`the connection to WhatsApp was lost`);
const wantsReconnect: WhatsAppVerdict = {
  kind: 'reconnect',
  reason: t`WhatsApp asked for a new connection`,
};

const restricted = (code: number): WhatsAppVerdict => ({
  kind: 'stop',
  reason: t`WhatsApp refuses this account (${code}); it may be restricted or banned`,
  remedy:
    t`Open WhatsApp on the phone and check the account. When it works ` +
    t`again there, run \`nanobot channels login whatsapp\`.`,
});

const outdated = (code: number): WhatsAppVerdict => ({
  kind: 'stop',
  reason: t`WhatsApp no longer accepts this version of its web client (${code})`,
  remedy: t`Install the newest nanobot and restart it; the phone stays linked.`,
});

/** By close code, for a linked account. `stop`: no retry helps before a person acts. */
const LINKED: Readonly<Record<number, WhatsAppVerdict>> = {
  400: waiting(t`the handshake with WhatsApp failed (400)`, HANDSHAKE_ALERT),
  401: {
    kind: 'relink',
    reason: t`WhatsApp logged this device out (401); its credentials are set aside`,
    remedy: LINK_REMEDY,
  },
  402: restricted(402),
  403: restricted(403),
  405: outdated(405),
  406: restricted(406),
  408: lost,
  409: outdated(409),
  411: {
    kind: 'stop',
    reason: t`WhatsApp on the phone does not support linked devices (411)`,
    remedy: t`Update WhatsApp on the phone, then run \`nanobot channels login whatsapp\`.`,
  },
  428: lost,
  440: {
    kind: 'stop',
    reason: t`another program took over this WhatsApp connection (440)`,
    remedy:
      t`Stop the other program that runs with the same credentials, then run ` +
      t`\`nanobot channels restart whatsapp\`.`,
  },
  503: {
    kind: 'wait',
    pace: 'long_backoff',
    reason: t`WhatsApp is not available at the moment (503)`,
  },
  515: wantsReconnect,
};

/** By close code, before a phone has confirmed. */
const PAIRING: Readonly<Record<number, WhatsAppVerdict>> = {
  400: waiting(t`the handshake with WhatsApp failed (400)`),
  401: givingUp(t`WhatsApp refused to link this device (401)`),
  408: lost,
  428: lost,
  440: givingUp(t`another program is linking with the same keys (440)`),
  // The library's own code for it; a wrong code typed on the phone invalidates the QR code, too.
  500: waiting(t`the confirmation of the phone was not valid`),
  503: waiting(t`WhatsApp is not available at the moment (503)`),
  515: wantsReconnect,
};

function judgeLinked(code: number): WhatsAppVerdict {
  const unknown = t`WhatsApp ended the connection for an unknown reason (${code})`;
  return LINKED[code] ?? waiting(unknown, UNKNOWN_ALERT);
}

function judgePairing({ code, message }: ClosedByServer): WhatsAppVerdict {
  // The library uses one number for a lost connection and for "no more QR codes".
  if (code === 408 && message.startsWith('QR refs')) return UNANSWERED;
  const known = PAIRING[code];
  if (known !== undefined) return known;
  const refusal = LINKED[code];
  if (refusal?.kind === 'stop') return { ...refusal, kind: 'give_up' };
  return givingUp(t`WhatsApp ended the pairing for an unknown reason (${code})`);
}

const UNANSWERED = givingUp(t`the QR code or the typed code was not used in time`);

function givingUp(reason: string): WhatsAppVerdict {
  return { kind: 'give_up', reason, remedy: TRY_AGAIN };
}

function waiting(reason: string, alertAfter?: number): WhatsAppVerdict {
  const alert = alertAfter === undefined ? {} : { alertAfter };
  return { kind: 'wait', pace: 'backoff', reason, ...alert };
}
