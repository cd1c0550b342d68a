// An unpredictable separator between texts.

import { randomBytes } from 'node:crypto';

const BYTES = 8;

export function newBoundary(): string {
  return randomBytes(BYTES).toString('hex');
}
