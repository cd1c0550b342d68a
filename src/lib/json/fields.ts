// Reads JSON that others wrote without believing it: what is missing or misshapen is undefined.

export type Fields = Readonly<Record<string, unknown>>;

/** The value JSON text stands for; undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Neither a list nor `null`. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const fieldsOf = (value: unknown): Fields | undefined =>
  isObject(value) ? value : undefined;

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.toWellFormed() : undefined;

/** Ids of vendors fit 52 bits; anything else is none. */
export const integerOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) ? Number(value) : undefined;

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

// JSON that a model or a tool wrote, read so that it can be written again: what is nested thousands
// deep can be read, but to write it overflows the stack, and it would stand in its conversation for good.

/** Far deeper than what any tool asks for, as levels of lists and objects. */
const MAX_DEPTH = 200;
const AT = /at position (\d+)/;

export type ReadJson =
  | { readonly kind: 'parsed'; readonly value: unknown }
  | { readonly kind: 'unreadable'; readonly problem: string };

export function readJson(text: string): ReadJson {
  try {
    const value: unknown = JSON.parse(text);
    if (!isDeeper(value, MAX_DEPTH)) return { kind: 'parsed', value };
    return { kind: 'unreadable', problem: 'it is nested too deep' };
  } catch (error) {
    const problem = error instanceof Error ? error.message : '';
    return { kind: 'unreadable', problem: `${problem}${isCut(problem, text) ? CUT : ''}` };
  }
}

const CUT =
  '. It ends in the middle, as what reaches the length limit of one answer does: give less in one call, and a long text in several';

const isCut = (problem: string, { length }: string) =>
  problem.startsWith('Unexpected end') || AT.exec(problem)?.[1] === `${length}`;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}
