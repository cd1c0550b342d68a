// Values of flags that are more than a text; a wrong one is a usage error.

import { InvalidArgumentError } from 'commander';
import { isAllowEntry, normaliseAllowed, phoneDigits } from '../core/whatsapp/jid.ts';

const MAX_PORT = 65_535;
const MAX_WAIT_SECS = 3600;

export function parsePort(text: string): number {
  return wholeNumber(text, MAX_PORT);
}

export function parseSeconds(text: string): number {
  return wholeNumber(text, MAX_WAIT_SECS);
}

export function parseCount(text: string): number {
  return wholeNumber(text, Number.MAX_SAFE_INTEGER);
}

/** Of what is shown: none of it is no answer. */
export function parseLimit(text: string): number {
  return wholeNumber(text, Number.MAX_SAFE_INTEGER, 1);
}

export function parseMoney(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('Use an amount above 0, e.g. 0.50.');
}

export function parseList(text: string): readonly string[] {
  return text.split(/[\s,;]+/).filter((item) => item !== '');
}

/** Phone numbers have spaces in them, so only commas and the like part them. */
export function numberEntries(text: string): readonly string[] {
  const entries = text.split(/[,;\n]+/).map((entry) => entry.trim());
  return entries.filter((entry) => entry !== '');
}

/** Entries of an allow list. */
export function parseNumbers(text: string): readonly string[] {
  const entries = numberEntries(text);
  const strange = entries.find((entry) => !isAllowEntry(entry));
  if (strange === undefined) return entries.map(normaliseAllowed);
  throw new InvalidArgumentError(`"${strange}" is no number with its country code.`);
}

/** An international number as digits alone. */
export function parsePhone(text: string): string {
  const digits = phoneDigits(text);
  if (digits !== undefined) return digits;
  throw new InvalidArgumentError('Write it with its country code, like +491511234567.');
}

function wholeNumber(text: string, maximum: number, minimum = 0): number {
  const value = Number(text);
  const isWithin = Number.isInteger(value) && value >= minimum && value <= maximum;
  if (text.trim() !== '' && isWithin) return value;
  throw new InvalidArgumentError(`Use a whole number from ${minimum} to ${maximum}.`);
}
