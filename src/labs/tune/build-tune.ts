// Opens a home for `nanobot tune`: the models there are to measure, and what measuring them takes.

import { chargedMeter } from '../../agent/charge.ts';
import { chatId, DEFAULT_ACCOUNT } from '../../kernel/message/ids.ts';
import { discoverLocalModels } from '../../providers/index.ts';
import { prefixOf } from '../../providers/rules/model-names.ts';
import { openPurse, type PurseWish } from '../eval/build-eval.ts';
import { EVAL_ROLE } from '../eval/cost.ts';
import { EVAL_CHANNEL } from '../eval/workbench.ts';
import { measureModel } from './measure-model.ts';
import type { ModelMeasure } from './rules/tune.ts';

export type Tuning = {
  /** Of the servers that answer now, with prefix. */
  localModels(signal: AbortSignal): Promise<readonly string[]>;
  /** @throws ProviderError, SpendingRefusedError, the signal's reason */
  measure(
    model: string,
    progress: (done: number, planned: number) => void,
    signal: AbortSignal,
  ): Promise<ModelMeasure>;
};

const PAYER = {
  chat: { channel: EVAL_CHANNEL, account: DEFAULT_ACCOUNT, chat: chatId('tune') },
  sender: { kind: 'system', source: 'webhook' },
} as const;

/** @throws HomeLockedError where a gateway runs in this home, StoreError */
export async function openTuning(
  wish: PurseWish,
  resources: AsyncDisposableStack,
): Promise<Tuning> {
  const { models, cost, clock } = await openPurse(wish, resources);
  return {
    async localModels(signal) {
      const servers = await discoverLocalModels({ at: models.localServers(), signal });
      return servers.flatMap((server) =>
        server.models.map((model) => `${prefixOf(server.vendor)}/${model}`),
      );
    },
    async measure(model, progress, signal) {
      const meter = (inputTokens: number, maxTokens: number) =>
        chargedMeter(cost.guard, PAYER, {
          ...{ role: EVAL_ROLE, maxTokens },
          inputTokens: () => inputTokens,
        });
      const local = models.localModel(model);
      await local?.site.warmUp(local.model, { meter: meter(1, 1) }, signal);
      const handle = models.resolve(model, 'once');
      return measureModel({ handle, clock, meter, progress }, signal);
    },
  };
}
