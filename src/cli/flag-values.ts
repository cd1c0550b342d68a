// Values of flags that are more than a text; a wrong one is a usage error.

import { InvalidArgumentError } from 'commander';

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

export function parseList(text: string): readonly string[] {
  return text.split(/[\s,;]+/).filter((item) => item !== '');
}

function wholeNumber(text: string, maximum: number): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= 0 && value <= maximum) return value;
  throw new InvalidArgumentError(`Use a whole number from 0 to ${maximum}.`);
}
