// What a person said, as an entry of a transcript.

import { messageId, turnId } from '../../src/kernel/message/ids.ts';
import type { UserEntry } from '../../src/kernel/message/transcript.ts';

export const ENTRY_AT = Date.UTC(2026, 0, 15, 12);

export const userEntry = (turn: string, text: string, at = ENTRY_AT): UserEntry => ({
  role: 'user',
  turnId: turnId(turn),
  messageId: messageId(`telegram:default:${turn}`),
  text,
  at,
});
