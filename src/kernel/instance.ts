// Which of several copies of a home this is. A copy has the id of its original. A home that moved
// does not start; in a copy whose original may still run, accounts that exist only once stay off.

import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { z } from 'zod';
import { textIfThere, writeAtomic } from '../lib/files/files.ts';
import { parseJson } from '../lib/json/json.ts';
import { t } from '../lib/texts.ts';
import type { Home } from './config/files/home.ts';
import { NanobotError } from './message/errors.ts';

const shape = z.object({
  /** The same in all copies. */
  id: z.string().min(1),
  /** Raised by each move: the copy with the highest one leads. */
  epoch: z.int().positive(),
  /** The gateway refuses to start here. */
  moved: z.object({ to: z.string(), at: z.string(), isDone: z.boolean() }).optional(),
  /** Accounts that exist only once are off here; `elsewhere`: the home that has them, if known. */
  held: z.object({ at: z.string(), elsewhere: z.string().optional() }).optional(),
});

export type Instance = Readonly<z.infer<typeof shape>>;

/** Undefined for a home that was never copied. @throws NanobotError if the file is damaged */
export async function readInstance(home: Home): Promise<Instance | undefined> {
  const text = await textIfThere(home.instance);
  if (text === undefined) return undefined;
  const parsed = shape.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new NanobotError(
    'instance_damaged',
    t`${home.instance} is damaged, so it is unknown whether another copy of this home runs. ` +
      t`Delete it if none does, then start again.`,
  );
}

export async function writeInstance(home: Home, instance: Instance): Promise<Instance> {
  await writeAtomic(home.instance, `${JSON.stringify(instance)}\n`);
  return instance;
}

/** Gives the home an id before it is copied. */
export async function ensureInstance(home: Home): Promise<Instance> {
  return (await readInstance(home)) ?? (await writeInstance(home, { id: randomUUID(), epoch: 1 }));
}

/** Why no gateway starts in a home, and what to do. */
export type Unusable = {
  readonly code: 'restore_interrupted' | 'home_moved';
  readonly text: string;
  readonly remedy: string;
};

/** Undefined unless it moved elsewhere, or a restore into it was interrupted. */
export async function findUnusable(home: Home): Promise<Unusable | undefined> {
  if (existsSync(home.restoring)) {
    const text = t`a restore into ${home.root} was interrupted`;
    return {
      ...{ code: 'restore_interrupted', text },
      remedy: t`Repeat it: nanobot backup restore --force`,
    };
  }
  const { moved } = (await readInstance(home)) ?? {};
  if (moved === undefined) return undefined;
  const { to, at } = moved;
  if (moved.isDone) {
    return {
      ...{ code: 'home_moved', text: t`this home moved to ${to} on ${at} and continues there` },
      remedy: t`If it was never started there, take it back: nanobot move --undo`,
    };
  }
  return {
    ...{ code: 'home_moved', text: t`the move of this home to ${to} was interrupted` },
    remedy: t`Repeat it: nanobot move --to ${to}. Or continue here: nanobot move --undo`,
  };
}

/** @throws NanobotError if it moved elsewhere, or if a restore into it was interrupted */
export async function assertUsable(home: Home): Promise<void> {
  const found = await findUnusable(home);
  if (found === undefined) return;
  throw new NanobotError(found.code, `${found.text}. ${found.remedy}`);
}

/** True if an interrupted move to the same place goes on. @throws NanobotError if it moved already */
export async function markMoved(home: Home, to: string, isDone = false): Promise<boolean> {
  const instance = await ensureInstance(home);
  const { moved } = instance;
  if (moved !== undefined && (moved.isDone || moved.to !== to)) await assertUsable(home);
  const epoch = moved === undefined ? instance.epoch + 1 : instance.epoch;
  const at = moved?.at ?? new Date().toISOString();
  await writeInstance(home, { ...instance, epoch, moved: { to, at, isDone } });
  return moved !== undefined;
}

/** All accounts run here again, unless they did not before the move either. */
export async function unmarkMoved(home: Home): Promise<void> {
  const { id, epoch, moved, held } = await ensureInstance(home);
  const stays = held !== undefined && (moved === undefined || held.at < moved.at);
  await writeInstance(home, { id, epoch: epoch + 1, ...(stays ? { held } : {}) });
}
