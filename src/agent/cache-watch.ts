// Whether a call begins as the last one of its session did, so that the provider's cache can hold, and
// if not, which part of it was the first to change. Prints of texts are made by whoever calls.

export type NamedPrint = { readonly name: string; readonly print: string };

export type CallPrints = {
  /** In the order in which providers are sent them: tools, then the stable parts of the prompt. */
  readonly parts: readonly NamedPrint[];
  /** Of the first `messages` messages: all that the next call should begin with. */
  readonly thread: { readonly messages: number; readonly chars: number; readonly print: string };
};

/** What the new call has at the place of the old one's thread; undefined: it is shorter. */
export type SamePlace = { readonly chars: number; readonly print: string } | undefined;

export const CONVERSATION = 'conversation';

/**
 * The first part that changed, by its name. A conversation that got shorter was made so on purpose:
 * summed up, trimmed, begun anew.
 */
export function firstChange(
  before: CallPrints,
  parts: readonly NamedPrint[],
  place: SamePlace,
): NamedPrint | undefined {
  for (let index = 0; index < Math.max(before.parts.length, parts.length); index += 1) {
    const [old, now] = [before.parts[index], parts[index]];
    if (old?.name === now?.name && old?.print === now?.print) continue;
    // A part that went away or came in between is to blame, not the one that took its place.
    const isGone = old !== undefined && !parts.some(({ name }) => name === old.name);
    return isGone ? { name: old.name, print: '' } : (now ?? old);
  }
  if (place === undefined || place.chars < before.thread.chars) return undefined;
  if (place.print === before.thread.print) return undefined;
  return { name: CONVERSATION, print: place.print };
}
