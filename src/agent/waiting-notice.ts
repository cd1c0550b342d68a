// What a person is told while a call waits for its place at a local model server.

import type { ModelEvent } from '../providers/provider.ts';

type Waiting = Extract<ModelEvent, { readonly type: 'waiting' }>;

export const waitingNotice = ({ server, ahead }: Waiting) =>
  `${server} answers one after the other: ${ahead} before you.`;
