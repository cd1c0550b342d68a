// Keeps how each channel was over the last days and how much waited over the last one, a look a minute.

import { z } from 'zod';
import type { BusStats } from '../../kernel/bus/bus.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { ChannelReport } from '../../kernel/gateway.ts';
import { jsonRow, parseJson } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  type ChannelSpan,
  channelSpans,
  type SeenState,
  withLook,
} from './rules/channel-history.ts';
import { type QueueDepth, queueDepths, withDepth } from './rules/queue-depths.ts';

const KEY = 'history';
const QUEUES_KEY = 'queues';

export interface ChannelHistory {
  look(
    channels: readonly ChannelReport[],
    queues: Pick<BusStats, 'pending' | 'running' | 'outboundQueued'>,
  ): Promise<void>;
  /** Oldest first. */
  spans(channel: string): readonly ChannelSpan[];
  /** Oldest first. */
  depths(): readonly QueueDepth[];
}

export async function createChannelHistory(
  state: KeyValueStore,
  clock: Pick<Clock, 'now'>,
): Promise<ChannelHistory> {
  const known = new Map<string, readonly ChannelSpan[]>(
    jsonRow(await state.get(KEY), channelSpans),
  );
  let depths: readonly QueueDepth[] =
    queueDepths.safeParse(parseJson((await state.get(QUEUES_KEY)) ?? '')).data ?? [];
  return {
    async look(channels, { pending, running, outboundQueued }) {
      const now = clock.now();
      for (const { name, status } of channels) {
        const seen = seenOf(status);
        if (seen !== undefined) known.set(name, withLook(known.get(name) ?? [], seen, now));
      }
      depths = withDepth(depths, { toAnswer: pending + running, toSend: outboundQueued }, now);
      await state.set(KEY, JSON.stringify([...known]));
      await state.set(QUEUES_KEY, JSON.stringify(depths));
    },
    spans: (channel) => known.get(channel) ?? [],
    depths: () => depths,
  };
}

const withReason = z.object({ reason: z.string().optional() });

function seenOf(status: ChannelReport['status']): SeenState | undefined {
  if (status.kind === 'off' || status.kind === 'elsewhere') return undefined;
  return { kind: status.kind, reason: withReason.safeParse(status).data?.reason };
}
