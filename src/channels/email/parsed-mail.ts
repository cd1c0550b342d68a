// What the parsing thread makes of a raw mail, and the messages it exchanges with the main thread.

import type { RawMail } from './mail-spool.ts';
import type { BounceReport } from './rules/bounce.ts';
import type { StrippedMail } from './rules/quotes.ts';
import type { DmarcEvidence, SignatureEvidence } from './rules/sender.ts';
import type { AttachedPart } from './rules/text.ts';

export type ParsedMail = {
  readonly subject: string;
  /** Decoded display name of the sender. */
  readonly fromName: string | undefined;
  /** The visible text with its quotes, from the plain part or else the HTML part. */
  readonly text: string;
  /** The same without quotes and signature. */
  readonly stripped: StrippedMail;
  readonly partsDiffer: boolean;
  /** Lower case, the whole mail's first. */
  readonly contentTypes: readonly string[];
  readonly calendarMethod: string | undefined;
  readonly attachments: readonly AttachedPart[];
  /** Its calendar entries, in words. */
  readonly calendars: readonly string[];
  /** What a delivery report says, where it reports a failure. */
  readonly bounce: BounceReport | undefined;
};

/** `unreadable`: over a limit, or the parser gave up; `gate` says which. */
export type ParseResult =
  | { readonly kind: 'parsed'; readonly mail: ParsedMail }
  | { readonly kind: 'unreadable'; readonly gate: string };

export type SignatureReport = {
  readonly signatures: readonly SignatureEvidence[];
  readonly dmarc: DmarcEvidence;
};

export const NO_SIGNATURES: SignatureReport = {
  signatures: [],
  dmarc: { result: 'temperror', strict: true },
};

/** Name service look-up: TXT records as lists of their pieces. Rejects with a Node DNS `code`. */
export type DnsLookup = (domain: string, type: string) => Promise<string[][] | string[]>;

export type ToParser =
  | { readonly kind: 'read'; readonly raw: RawMail }
  /**
   * Asks for the contents of the mail's attachments, written one behind the other to the file
   * descriptor `into`, in the order `ParsedMail` names them.
   */
  | { readonly kind: 'files'; readonly raw: RawMail; readonly into: number }
  | {
      readonly kind: 'records';
      readonly query: number;
      readonly records: string[][] | string[] | undefined;
      readonly errorCode: string | undefined;
    };

export type FromParser =
  | { readonly kind: 'parsed'; readonly result: ParseResult }
  | { readonly kind: 'files'; readonly sizes: readonly number[] }
  /** What it wrote into could not take all of it. */
  | { readonly kind: 'no_room' }
  | {
      readonly kind: 'lookup';
      readonly query: number;
      readonly domain: string;
      readonly type: string;
    }
  | { readonly kind: 'verified'; readonly report: SignatureReport };
