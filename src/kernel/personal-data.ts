// CONTRACT of what a feature keeps of people's conversations, so that all of it is found, exported and erased as one.

import type { Holds } from './sessions/rules/forgetting.ts';

/** Whose data is meant. */
export type DataReach = {
  /** Their folder of notes; empty: the owners'. */
  readonly notes: string;
  /** Session keys without topics. */
  readonly chats: readonly string[];
};

export type ExportFormat = 'md' | 'jsonl';

/** Chats are session keys without topics. */
export interface PersonalData {
  /** Chats that were started from these; asked until nothing new comes. `isOwner`: for an owner of the machine. */
  chatsBelow?(chats: readonly string[], isOwner: boolean): Promise<readonly string[]>;
  /** What it keeps of these chats and holds the words, as a person sees it. */
  find?(
    chats: readonly string[],
    holds: Holds,
  ): Promise<readonly { readonly where: string; readonly text: string }[]>;
  /** All that it keeps; without it, all that `find` finds is exported. */
  export?(reach: DataReach, format: ExportFormat): AsyncIterable<string>;
  /** Erases it; how much held the words. May be repeated. */
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

/** A text under the name of the place where it is kept. */
export function exportedText(
  part: { readonly type: string; readonly path: string; readonly text: string },
  format: ExportFormat,
): string {
  return format === 'md'
    ? `# ${part.path}\n\n${part.text.trim()}\n\n`
    : `${JSON.stringify(part)}\n`;
}
