// Parsers of flag values that are more than a text; an invalid value is a usage error.

import { InvalidArgumentError } from 'commander';
import { isAllowEntry, normaliseAllowed, phoneDigits } from '../channels/whatsapp/rules/jid.ts';
import { t } from '../lib/texts.ts';

const MAX_PORT = 65_535;
const MAX_WAIT_SECS = 3600;

export const parsePort = wholeNumber(0, MAX_PORT);
export const parseSeconds = wholeNumber(0, MAX_WAIT_SECS);
export const parseCount = wholeNumber(0, Number.MAX_SAFE_INTEGER);
/** Number of shown items; zero is not allowed. */
export const parseLimit = wholeNumber(1, Number.MAX_SAFE_INTEGER);

export function parseMoney(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError(t`Use an amount above 0, e.g. 0.50.`);
}

export function parseList(text: string): readonly string[] {
  return text.split(/[\s,;]+/).filter((item) => item !== '');
}

/** Phone numbers may contain spaces, so only commas, semicolons and line ends separate them. */
export function numberEntries(text: string): readonly string[] {
  const entries = text.split(/[,;\n]+/).map((entry) => entry.trim());
  return entries.filter((entry) => entry !== '');
}

/** Entries of an allow list. */
export function parseNumbers(text: string): readonly string[] {
  const entries = numberEntries(text);
  const strange = entries.find((entry) => !isAllowEntry(entry));
  if (strange === undefined) return entries.map(normaliseAllowed);
  throw new InvalidArgumentError(
    t`"${strange}" is not a phone number. Write it with the country code, e.g. +491511234567.`,
  );
}

/** An international number, digits only. */
export function parsePhone(text: string): string {
  const digits = phoneDigits(text);
  if (digits !== undefined) return digits;
  throw new InvalidArgumentError(t`Write it with the country code, e.g. +491511234567.`);
}

/** From the minimum to the maximum. */
export function wholeNumber(minimum: number, maximum: number) {
  return (text: string): number => {
    const value = Number(text);
    const isWithin = Number.isInteger(value) && value >= minimum && value <= maximum;
    if (text.trim() !== '' && isWithin) return value;
    throw new InvalidArgumentError(t`Use a whole number from ${minimum} to ${maximum}.`);
  };
}

// Formats points and spans of time for people.

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const UNITS_MS: Readonly<Record<string, number>> = {
  s: SECOND_MS,
  m: MINUTE_MS,
  h: HOUR_MS,
  d: DAY_MS,
};

/** `2026-01-15 12:00:00`, in the machine's time zone. */
export function momentText(atMs: number): string {
  return new Date(atMs).toLocaleString('sv-SE');
}

/** `90s`, `5m`, `3h`, `12d`: the largest unit that keeps about two digits. */
export function spanText(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.max(0, Math.round(ms / SECOND_MS))}s`;
  if (ms < 2 * HOUR_MS) return `${Math.round(ms / MINUTE_MS)}m`;
  if (ms < 2 * DAY_MS) return `${Math.round(ms / HOUR_MS)}h`;
  return `${Math.round(ms / DAY_MS)}d`;
}

/** `7d`, `12h`, `30m` or `45s` in milliseconds; undefined where the text is not a duration. */
export function parseSpan(text: string): number | undefined {
  const match = /^(\d{1,6})([smhd])$/.exec(text.trim());
  if (match === null) return undefined;
  return Number(match[1]) * (UNITS_MS[match[2] ?? ''] ?? 0);
}
