// Where the cache marks of an Anthropic call stand: the service reads what an earlier call wrote up to
// a mark, looks for it at most 20 blocks before a mark of ours, and takes 4 of them
// (platform.claude.com: prompt caching). Two belong to the tools and the system prompt.

import type { ContentBlockParam, MessageParam } from '@anthropic-ai/sdk/resources/messages';

/** Kept for five minutes from its last use, which is the default. */
export const CACHE_MARK = { cache_control: { type: 'ephemeral' } } as const;

export type BuiltMessage = {
  readonly role: 'user' | 'assistant';
  readonly content: ContentBlockParam[];
  /** Blocks at its end that the next call will not send again. */
  passing: number;
  /** It was sent with its thinking before, and is now sent without. */
  hasLostThinking: boolean;
};

/**
 * Marked are the newest message, for the next call to find, and where the call before this one ended.
 * Nothing goes on from a call that stands alone: to write it to the cache would only cost more.
 */
export function threadMessages(messages: readonly BuiltMessage[], goesOn: boolean): MessageParam[] {
  const marked = new Set(goesOn ? [messages.length - 1, endOfCallBefore(messages)] : []);
  return messages.map(({ role, content, passing }, index) => ({
    role,
    content: marked.has(index) ? withMark(content, content.length - 1 - passing) : content,
  }));
}

/**
 * Thinking goes along while its round of tools is under way. The first call of a turn therefore
 * shares with the turn before only what stands before that turn's first thought.
 */
function endOfCallBefore(messages: readonly BuiltMessage[]): number {
  const newest = messages.length - 1;
  if (hasResults(messages[newest])) return newest - 2;
  const asked = messages.findLastIndex(
    (message, index) => index < newest && message.role === 'user' && !hasResults(message),
  );
  const lost = messages.findIndex(({ hasLostThinking }, index) => index > asked && hasLostThinking);
  return lost === -1 ? newest - 2 : lost - 1;
}

const hasResults = (message: BuiltMessage | undefined) =>
  message?.content.some(({ type }) => type === 'tool_result') === true;

function withMark(content: readonly ContentBlockParam[], at: number): ContentBlockParam[] {
  return content.map((block, index) => {
    if (index !== at || block.type === 'thinking' || block.type === 'redacted_thinking') {
      return block;
    }
    return { ...block, ...CACHE_MARK };
  });
}
