// Keeps how each channel was over the last days, a look a minute.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { ChannelReport } from '../../kernel/gateway.ts';
import { jsonRow } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  type ChannelSpan,
  channelSpans,
  type SeenState,
  withLook,
} from './rules/channel-history.ts';

const KEY = 'history';

export interface ChannelHistory {
  look(channels: readonly ChannelReport[]): Promise<void>;
  /** Oldest first. */
  spans(channel: string): readonly ChannelSpan[];
}

export async function createChannelHistory(
  state: KeyValueStore,
  clock: Pick<Clock, 'now'>,
): Promise<ChannelHistory> {
  const known = new Map<string, readonly ChannelSpan[]>(
    jsonRow((await state.get(KEY)) ?? '', channelSpans),
  );
  return {
    async look(channels) {
      const now = clock.now();
      for (const { name, status } of channels) {
        const seen = seenOf(status);
        if (seen !== undefined) known.set(name, withLook(known.get(name) ?? [], seen, now));
      }
      await state.set(KEY, JSON.stringify([...known]));
    },
    spans: (channel) => known.get(channel) ?? [],
  };
}

const withReason = z.object({ reason: z.string().optional() });

function seenOf(status: ChannelReport['status']): SeenState | undefined {
  if (status.kind === 'off' || status.kind === 'elsewhere') return undefined;
  return { kind: status.kind, reason: withReason.safeParse(status).data?.reason };
}
