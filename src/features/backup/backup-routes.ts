// Back-ups over HTTP: listed, made and verified by the commands of `nanobot backup`.

import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import { EVERY_PATTERN, KEEP_PATTERN } from '../../kernel/config/limits.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import { t } from '../../lib/texts.ts';
import { explained } from '../setup/asker.ts';
import type { BackupRuns } from './backup-runs.ts';
import { readRecord } from './index.ts';
import { readPlace } from './places.ts';
import { snapshots } from './repository.ts';
import { backupList, backupState } from './rules/views.ts';

const MAX_PLACE_CHARS = 1000;
const MAX_PASSPHRASE_CHARS = 1000;
const MAX_ID_CHARS = 100;
const NEVER = 'never';
const PASSPHRASE_VARIABLE = 'NANOBOT_BACKUP_PASSPHRASE';

const passphrase = z.string().min(1).max(MAX_PASSPHRASE_CHARS);
const wish = z.strictObject({
  to: z
    .string()
    .trim()
    .max(MAX_PLACE_CHARS)
    .refine((to) => isAbsolute(to) || to.startsWith('s3://'), {
      error: t`is a folder such as /media/disk/nanobot, or s3://bucket/prefix`,
    })
    .exactOptional()
    .describe('Where it is kept, from now on; absent: where the others are.'),
  every: z
    .string()
    .regex(new RegExp(`${EVERY_PATTERN.source}|^${NEVER}$`), t`is hour, day, week, 12h or never`)
    .exactOptional()
    .describe('From now on the gateway makes one so often; never: only on request.'),
  keep: z.string().regex(KEEP_PATTERN, t`is such as 7d4w6m`).exactOptional(),
  passphrase: passphrase
    .exactOptional()
    .describe('For the first one in a place: it is encrypted, and so are all later ones.'),
});
const verifyWish = z.strictObject({
  passphrase: passphrase.exactOptional().describe('Of the place, if it is encrypted by one.'),
});
const oneBackup = z.object({
  id: z
    .string()
    .max(MAX_ID_CHARS)
    .regex(/^\w[\w-]*$/),
});
const started = z.object({ result: z.literal('started') });

export function backupRoutes(kernel: Kernel, runs: BackupRuns) {
  const { live, home, env, clock, log, measuring, options } = kernel;
  const { typed = (text: string) => text } = options;
  const shownText = (text: string) =>
    text.includes(PASSPHRASE_VARIABLE) ? t`The passphrase is needed. Enter it below.` : typed(text);
  const closing = new AbortController();
  kernel.resources.defer(() => closing.abort());

  /** Where they are kept, or the last one was. */
  async function placeNow(): Promise<string> {
    return live.config.backup.to || ((await readRecord(home)).made?.to ?? '');
  }

  async function state() {
    const { made, verified, failing } = await readRecord(home);
    const { every, keep } = live.config.backup;
    const { running, ended } = runs;
    return {
      ...{ place: await placeNow(), suggestedPlace: `${home.root}-backups`, every, keep },
      ...(made === undefined ? {} : { made: { id: made.id, at: made.at, bytes: made.bytes } }),
      ...(verified === undefined ? {} : { verified }),
      ...(failing === undefined ? {} : { failing }),
      ...(running === undefined ? {} : { running }),
      ...(ended === undefined ? {} : { ended: { ...ended, text: shownText(ended.text) } }),
    };
  }
  async function list() {
    const from = await placeNow();
    if (from === '') return { place: '', backups: [] };
    const { backup, network } = live.config;
    await using place = await readPlace(from, { env, s3: backup.s3, proxy: network.proxy });
    const found = (await snapshots(place)).map(({ id, at, files, bytes }) => ({
      ...{ id, at: Date.parse(at), files, bytes },
    }));
    return { place: place.name, backups: found.toSorted((one, other) => other.at - one.at) };
  }

  function start(
    what: Parameters<BackupRuns['run']>[0],
    args: readonly string[],
    words: string | undefined,
  ) {
    if (runs.running !== undefined) {
      const text = t`Another back-up is being made or verified. Wait until it has ended.`;
      throw new Refusal(409, 'backup_busy', text);
    }
    noteCommand(measuring.audit, 'backup', what.what, ...(what.id === undefined ? [] : [what.id]));
    const secret = words === undefined ? {} : { [PASSPHRASE_VARIABLE]: words };
    runs
      .run(what, args, closing.signal, secret)
      .catch((error) => log.error('back-up command failed', { error }));
    return { result: 'started' } as const;
  }

  return {
    'GET /api/v1/backups': endpoint(
      { summary: t`The back-ups that are kept, newest first`, answer: backupList },
      () => explained(list, () => 409),
    ),
    'GET /api/v1/backups/events': watched(
      {
        summary: t`Where and how often back-ups are made, and what is being done, now and after each change`,
        answer: backupState,
      },
      clock,
      state,
    ),
    'POST /api/v1/backups': endpoint(
      { summary: t`Make a back-up now`, body: wish, answer: started, status: 202 },
      async (_params, { to, every, keep, passphrase: words }) => {
        const place = to ?? (await placeNow());
        if (place === '') throw new Refusal(400, 'no_place', t`Say where it is kept.`);
        const schedule = every === undefined ? [] : ['--every', every];
        const kept = keep === undefined ? [] : ['--keep', keep];
        const secret = words === undefined ? [] : ['--encrypt', 'passphrase'];
        const args = ['backup', 'create', '--to', place, ...schedule, ...kept, ...secret];
        return start({ what: 'create' }, args, words);
      },
    ),
    'POST /api/v1/backups/:id/verify': endpoint(
      {
        summary: t`Restore a back-up into a temporary folder and start a gateway there`,
        ...{ params: oneBackup, body: verifyWish, answer: started, status: 202 },
      },
      async ({ id }, { passphrase: words }) =>
        start({ what: 'verify', id }, ['backup', 'verify', id, '--from', await placeNow()], words),
    ),
  } satisfies RouteHandlers;
}
