// One chat as a person sees it: messages in order of arrival, edits and revokes applied, and a way
// to wait for what is still to come.

import type { SeenMessage } from './contract.ts';
import type { Content } from './message-content.ts';

const WAIT_MS = 10_000;

export interface ChatView {
  readonly seen: readonly SeenMessage[];
  arrived(id: string, content: Content): void;
  /** @throws after `timeoutMs`, with what was seen instead */
  sees(match: (message: SeenMessage) => boolean, timeoutMs?: number): Promise<SeenMessage>;
}

export function createChatView(now: () => number): ChatView {
  const seen: SeenMessage[] = [];
  const waiting = new Set<() => void>();
  const change = (id: string, next: (message: SeenMessage) => SeenMessage) => {
    const at = seen.findIndex((message) => message.id === id);
    const message = seen[at];
    if (message === undefined) return false;
    seen[at] = next(message);
    return true;
  };
  return {
    seen,
    arrived(id, content) {
      apply(id, content);
      for (const look of waiting) look();
    },
    sees(match, timeoutMs = WAIT_MS) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const found = seen.find(match);
          if (found === undefined) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve(found);
        };
        const timer = setTimeout(() => {
          waiting.delete(look);
          reject(new Error(`Nothing seen that matches within ${timeoutMs} ms: ${tell(seen)}`));
        }, timeoutMs);
        waiting.add(look);
        look();
      });
    },
  };

  function apply(id: string, content: Content): void {
    switch (content.kind) {
      case 'text': {
        const arrivedAgain = change(id, (old) => ({ ...old, arrivals: old.arrivals + 1 }));
        if (arrivedAgain) return;
        const { text } = content;
        seen.push({ id, text, earlier: [], revoked: false, arrivals: 1, at: now() });
        return;
      }
      case 'edit':
        change(content.of, (old) =>
          old.text === content.text
            ? old
            : { ...old, text: content.text, earlier: [...old.earlier, old.text] },
        );
        return;
      case 'revoke':
        change(content.of, (old) => ({ ...old, revoked: true }));
        return;
      case 'nothing':
        return;
    }
  }
}

const tell = (seen: readonly SeenMessage[]) =>
  seen.length === 0 ? 'nothing' : JSON.stringify(seen.map(({ text }) => text.slice(0, 80)));
