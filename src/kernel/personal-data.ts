// CONTRACT of what a feature keeps of people's conversations, so that all of it is found and erased as one.

import type { Holds } from './sessions/rules/forgetting.ts';

/** Chats are session keys without topics. */
export interface PersonalData {
  /** Chats that were started from these; asked until nothing new comes. `isOwner`: for an owner of the machine. */
  chatsBelow?(chats: readonly string[], isOwner: boolean): Promise<readonly string[]>;
  /** What it keeps of these chats and holds the words, as a person sees it. */
  find?(
    chats: readonly string[],
    holds: Holds,
  ): Promise<readonly { readonly where: string; readonly text: string }[]>;
  /** Erases it; how much held the words. May be repeated. */
  forget?(chats: readonly string[], holds: Holds): Promise<number>;
}
