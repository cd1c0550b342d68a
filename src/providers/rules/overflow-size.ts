// Which window a server names when it finds a question too long. Each names it in words of its own, among
// other numbers; what is named in none of these stays unknown.

/** What no window is below, or above; tokens. */
export const LEAST_CONTEXT_TOKENS = 256;
export const MOST_CONTEXT_TOKENS = 100_000_000;

/** Enough for every such sentence; the rest may be the question itself. */
const MAX_READ_CHARS = 2000;
const SIZE = String.raw`\(?\s*(\d[\d,]{2,11})\b`;
const SAID = [
  // llama.cpp, and what is built on it.
  String.raw`n_ctx["']?\s*[:=]?\s*${SIZE}`,
  String.raw`available context size\s*${SIZE}`,
  // vLLM, OpenAI and those that speak like them.
  String.raw`max(?:imum)? (?:context|model) (?:length|size|window)(?: (?:is|of)(?: only)?)?\s*${SIZE}`,
  // LM Studio.
  String.raw`context (?:length|size|window) (?:is|of)(?: only)?\s*${SIZE}`,
  // Anthropic, and gateways that speak like it.
  `tokens? > ${SIZE} maximum`,
].map((words) => new RegExp(words, 'i'));

/** Tokens; undefined where none is named, or none that could be. `field`: beside the words. */
export function overflowSize(said: string, field: unknown): number | undefined {
  const read = said.slice(0, MAX_READ_CHARS);
  const sizes = SAID.map((words) => Number(words.exec(read)?.[1]?.replaceAll(',', '')));
  return [Number(field), ...sizes].find(isPossible);
}

const isPossible = (size: number) =>
  Number.isSafeInteger(size) && size >= LEAST_CONTEXT_TOKENS && size <= MOST_CONTEXT_TOKENS;
