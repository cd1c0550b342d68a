// How a connection ends: the stanza that says why, and what becomes of the socket after it.

import type { BinaryNode } from '@whiskeysockets/baileys';
import type { Ending } from './contract.ts';

export type SocketFate = 'close' | 'drop' | 'keep';

/** What is said before the socket meets its fate; undefined: nothing. */
export function farewell(ending: Ending): BinaryNode | undefined {
  switch (ending.kind) {
    case 'stream_error':
      return {
        tag: 'stream:error',
        attrs: { code: String(ending.code) },
        ...(ending.code === 401 ? { content: [conflict('device_removed')] } : {}),
      };
    case 'conflict':
      return { tag: 'stream:error', attrs: {}, content: [conflict('replaced')] };
    case 'failure':
      return { tag: 'failure', attrs: { reason: String(ending.reason), location: 'loopback' } };
    case 'stream_end':
      return { tag: 'xmlstreamend', attrs: {} };
    case 'close':
    case 'drop':
    case 'silence':
      return undefined;
  }
}

export function socketFate(ending: Ending): SocketFate {
  if (ending.kind === 'silence') return 'keep';
  return ending.kind === 'drop' ? 'drop' : 'close';
}

function conflict(type: string): BinaryNode {
  return { tag: 'conflict', attrs: { type } };
}
