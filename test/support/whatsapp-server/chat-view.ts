// One chat as a person sees it: messages in order of arrival, edits and revokes applied, and a way
// to wait for what is still to come.

import type { SeenMessage } from './contract.ts';
import type { Content } from './message-content.ts';

const WAIT_MS = 45_000;

export class ChatView {
  readonly #seen: SeenMessage[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  get seen(): readonly SeenMessage[] {
    return this.#seen;
  }

  arrived(id: string, content: Content): void {
    switch (content.kind) {
      case 'text':
        this.#write(id, content);
        break;
      case 'edit':
        this.#change(content.of, (old) => edited(old, content.text));
        break;
      case 'revoke':
        this.#change(content.of, (old) => ({ ...old, revoked: true }));
        break;
      case 'nothing':
        break;
    }
    for (const look of this.#waiting) look();
  }

  /** @throws after `timeoutMs`, with what was seen instead */
  sees(match: (message: SeenMessage) => boolean, timeoutMs = WAIT_MS): Promise<SeenMessage> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.#seen.find(match);
        if (found === undefined) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`Nothing seen that matches within ${timeoutMs} ms: ${tell(this.#seen)}`));
      }, timeoutMs);
      this.#waiting.add(look);
      look();
    });
  }

  #write(id: string, { text, message }: Extract<Content, { readonly kind: 'text' }>): void {
    const isKnown = this.#change(id, (old) => ({ ...old, arrivals: old.arrivals + 1 }));
    if (isKnown) return;
    this.#seen.push({
      id,
      text,
      message,
      earlier: [],
      revoked: false,
      arrivals: 1,
      at: this.#now(),
    });
  }

  #change(id: string, next: (message: SeenMessage) => SeenMessage): boolean {
    const at = this.#seen.findIndex((message) => message.id === id);
    const message = this.#seen[at];
    if (message === undefined) return false;
    this.#seen[at] = next(message);
    return true;
  }
}

/** The same edit that arrives again changes nothing. */
function edited(old: SeenMessage, text: string): SeenMessage {
  if (old.text === text) return old;
  return { ...old, text, earlier: [...old.earlier, old.text] };
}

function tell(seen: readonly SeenMessage[]): string {
  return seen.length === 0 ? 'nothing' : JSON.stringify(seen.map(({ text }) => text.slice(0, 80)));
}
