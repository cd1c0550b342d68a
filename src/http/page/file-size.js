// A file size as text.

export function sizeText(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  const [amount, unit] = bytes < 999_500 ? [bytes / 1000, 'kB'] : [bytes / 1e6, 'MB'];
  return `${amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${unit}`;
}
