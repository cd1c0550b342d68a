// Updates over HTTP, with the rights of an owner: asks for the newest version, and starts the update. The
// events of operations show how it goes.

import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import { programVersion } from '../../kernel/config/files/home.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, type RouteHandlers } from '../../kernel/http-routes.ts';
import { t } from '../../lib/texts.ts';
import { explained } from '../setup/asker.ts';
import { askForNewest, isNewer } from './registry.ts';
import type { StartedUpdates } from './started-update.ts';

const ASK_MS = 15_000;

export function updateRoutes(
  { home, env, clock, live, measuring }: Kernel,
  updates: StartedUpdates,
) {
  return {
    'POST /api/v1/update/check': endpoint(
      {
        summary: t`Ask the npm registry for the newest version`,
        ...{
          body: z.strictObject({}),
          answer: z.object({ version: z.string(), isNewer: z.boolean() }),
        },
      },
      () =>
        explained(async () => {
          const signal = AbortSignal.timeout(ASK_MS);
          const { proxy } = live.config.network;
          const { version } = await askForNewest(home, clock.now(), { env, proxy, signal });
          updates.asked();
          return { version, isNewer: isNewer(version, programVersion()) };
        }, conflict),
    ),
    'POST /api/v1/update': endpoint(
      {
        summary: t`Install the newest version, as nanobot update does; the gateway starts again`,
        ...{
          body: z.strictObject({}),
          answer: z.object({ result: z.literal('started') }),
          status: 202,
        },
      },
      () =>
        explained(async () => {
          await updates.start();
          noteCommand(measuring.audit, 'update');
          return { result: 'started' } as const;
        }, conflict),
    ),
  } satisfies RouteHandlers;
}

const conflict = () => 409;
