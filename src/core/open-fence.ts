// A text that was cut off in the midst of a block of code: closed, so that what follows is none of it.

export function withFenceClosed(text: string): string {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm) ?? [];
  return fences.length % 2 === 1 ? `${text}\n${fences.at(-1)?.trim() ?? ''}` : text;
}
