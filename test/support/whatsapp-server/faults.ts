// What goes wrong with single stanzas on their way, by script: each stanza passes here in both
// directions, and goes on at once, later, twice, changed or never.

import { type BinaryNode, getAllBinaryNodeChildren } from '@whiskeysockets/baileys';
import type { Fault } from './contract.ts';

type Armed = {
  readonly fault: Fault;
  left: number;
  /** What `reorder` holds back. */
  held: (() => void) | undefined;
};

/** Where a stanza goes when it passed. */
export type Way = {
  on(stanza: BinaryNode, frame?: 'compressed'): void;
  /** `up` messages only: refused with this error. */
  nack(code: number): void;
};

export class FaultScript {
  readonly #armed: Armed[] = [];
  readonly #timers = new Set<NodeJS.Timeout>();

  arm(fault: Fault): void {
    this.#armed.push({ fault, left: fault.times ?? 1, held: undefined });
  }

  /** No more faults; what was held back goes on now. */
  clear(): void {
    for (const { held } of this.#armed.splice(0)) held?.();
  }

  /** Nothing goes on any more, delayed stanzas included. */
  stop(): void {
    this.#armed.length = 0;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  pass(direction: Fault['direction'], stanza: BinaryNode, way: Way): void {
    const armed = this.#armed.filter(({ fault }) => fault.direction === direction);
    const matching = armed.filter(({ fault }) => isMeant(fault.stanza, stanza));
    const held = armed.filter((each) => each.held && isMeant(endOf(each.fault), stanza));
    if (held.length > 0) {
      way.on(stanza);
      for (const each of held) {
        each.held?.();
        each.held = undefined;
      }
      return;
    }
    const meant = matching.find(({ left }) => left > 0);
    if (meant === undefined) {
      way.on(stanza);
      return;
    }
    meant.left -= 1;
    this.#apply(meant, stanza, way);
  }

  #apply(armed: Armed, stanza: BinaryNode, way: Way): void {
    const { effect } = armed.fault;
    switch (effect.kind) {
      case 'drop':
        break;
      case 'duplicate':
        way.on(stanza);
        way.on(stanza);
        break;
      case 'delay':
        this.#later(effect.ms, () => way.on(stanza));
        break;
      case 'reorder':
        armed.held = () => way.on(stanza);
        break;
      case 'compress':
        way.on(stanza, 'compressed');
        break;
      case 'nack':
        way.nack(effect.code);
        break;
      case 'corrupt':
        way.on(corrupted(stanza));
        break;
    }
  }

  #later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, ms);
    this.#timers.add(timer);
  }
}

/** What has to pass before a stanza that was held back does. */
function endOf({ effect, stanza }: Fault): string {
  return effect.kind === 'reorder' ? (effect.behind ?? stanza) : stanza;
}

function isMeant(pattern: string, stanza: BinaryNode): boolean {
  const [tag, kind] = pattern.split(' ');
  if (tag !== stanza.tag) return false;
  if (kind === undefined) return true;
  const child = getAllBinaryNodeChildren(stanza)[0]?.tag;
  return [stanza.attrs['type'], stanza.attrs['xmlns'], child].includes(kind);
}

/** A copy with one byte of its last ciphertext changed; the queue keeps the true one. */
export function corrupted(stanza: BinaryNode): BinaryNode {
  const children = getAllBinaryNodeChildren(stanza);
  const last = children.findLastIndex(({ tag }) => tag === 'enc');
  return {
    ...stanza,
    content: children.map((child, index) => {
      if (index !== last || !(child.content instanceof Uint8Array)) return child;
      const content = Buffer.from(child.content);
      const middle = Math.floor(content.length / 2);
      content.writeUInt8(content.readUInt8(middle) ^ 0xff, middle);
      return { ...child, content };
    }),
  };
}
