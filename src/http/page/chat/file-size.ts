// A file size as text.

import { t } from '/texts.js';

export function sizeText(bytes: number): string {
  if (bytes < 1000) return t`${bytes} bytes`;
  const [amount, unit] = bytes < 999_500 ? [bytes / 1000, 'kB'] : [bytes / 1e6, 'MB'];
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${unit}`;
}
