// CONTRACT of a feature's data about people's conversations, so that all of it is found, exported
// and erased together.

import type { Holds } from './sessions/rules/forgetting.ts';

/** The person whose data is meant. */
export type DataReach = {
  /** Their folder of notes; empty: the owners'. */
  readonly notes: string;
  /** Session keys without topics. */
  readonly chats: readonly string[];
};

export type ExportFormat = 'md' | 'jsonl';

/** Chats are session keys without topics. */
export interface PersonalData {
  /**
   * Chats that were started from these; called until nothing new comes. `isOwner`: for an owner of
   * the machine.
   */
  chatsBelow?(chats: readonly string[], isOwner: boolean): Promise<readonly string[]>;
  /** Its data about these chats that contains the words, as a person sees it. */
  find?(
    chats: readonly string[],
    holds: Holds,
  ): Promise<readonly { readonly where: string; readonly text: string }[]>;
  /** All its data; if absent, everything that `find` finds is exported. */
  export?(reach: DataReach, format: ExportFormat): AsyncIterable<string>;
  /** Erases it; returns how much contained the words. May be repeated. */
  forget?(chats: readonly string[], holds: Holds): Promise<number>;
}

export async function* exported(
  data: PersonalData,
  reach: DataReach,
  format: ExportFormat,
): AsyncGenerator<string, void, void> {
  if (data.export !== undefined) {
    yield* data.export(reach, format);
    return;
  }
  for (const { where, text } of (await data.find?.(reach.chats, () => true)) ?? []) {
    yield exportedText({ type: 'kept', path: where, text }, format);
  }
}

/** A text under the name of its storage place. */
export function exportedText(
  part: { readonly type: string; readonly path: string; readonly text: string },
  format: ExportFormat,
): string {
  return format === 'md'
    ? `# ${part.path}\n\n${part.text.trim()}\n\n`
    : `${JSON.stringify(part)}\n`;
}
