// The record of an update in the home that it is for: the steps in update.ts.

import { rm } from 'node:fs/promises';
import { z } from 'zod';
import { wayBack } from '../../cli/explain-error.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { birthOf, isAlive } from '../../kernel/home-state.ts';
import { textIfThere, writeAtomic } from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';

const runShape = z.object({
  step: z.enum([
    ...['preparing', 'stopping', 'switched', 'watching', 'rolling-back', 'restoring'],
    ...['done', 'rolled-back', 'kept'],
  ] as const),
  from: z.string(),
  to: z.string(),
  /** The folder of the versions. */
  prefix: z.string(),
  /** Epoch milliseconds. */
  at: z.number(),
  /** The process that carries it out. */
  pid: z.number(),
  /** Its start, so that a later process with this number is not taken for it. */
  born: z.string().optional(),
  /** How long the new version is watched. */
  watchMs: z.number().optional(),
  backup: z.object({ place: z.string(), id: z.string() }).optional(),
  /** Undefined until the gateway stopped. */
  store: z.object({ schema: z.number(), traffic: z.string() }).optional(),
  /** Channels that ran; undefined if no gateway did. */
  channels: z.array(z.string()).optional(),
  /** Starts of the new version after its updater ended. */
  starts: z.number().optional(),
  /** Why it was rolled back. */
  reason: z.string().optional(),
  /** The owner knows how it ended. */
  told: z.boolean().optional(),
});

export type UpdateRun = Readonly<z.infer<typeof runShape>>;

export async function readRun(home: Home): Promise<UpdateRun | undefined> {
  const written = await textIfThere(home.update);
  return written === undefined ? undefined : runShape.safeParse(parseJson(written)).data;
}

export const writeRun = (home: Home, run: UpdateRun): Promise<void> =>
  writeAtomic(home.update, `${JSON.stringify(run, undefined, 2)}\n`);

const OVER: readonly UpdateRun['step'][] = ['done', 'rolled-back', 'kept'];
export const isOver = ({ step }: UpdateRun): boolean => OVER.includes(step);
/** From here on a kill needs a continuation. */
export const isBegun = (run: UpdateRun) => !isOver(run) && run.step !== 'preparing';

/** This process carries it out from now on. */
export async function takenOver(run: UpdateRun): Promise<UpdateRun> {
  const { pid } = process;
  const born = await birthOf(pid);
  return { ...run, pid, ...(born === undefined ? {} : { born }) };
}

/** Its process still runs. */
export async function isAttended({ pid, born }: UpdateRun): Promise<boolean> {
  return isAlive(pid) && (born === undefined || born === ((await birthOf(pid)) ?? born));
}

/** What was kept for the way back is not needed any more. */
export const dropKept = (home: Home): Promise<void> =>
  rm(home.beforeUpdate, { recursive: true, force: true });

/** Channels that ran before and do not any more, as a reason; undefined if all run. */
export function downChannels({ channels = [] }: UpdateRun, running: readonly string[]) {
  const down = channels.filter((name) => !running.includes(name));
  return down.length === 0 ? undefined : t`not running any more: ${down.join(', ')}`;
}

/** For the owner. */
export function outcomeText(run: UpdateRun): string {
  const { from, to, reason = '', backup } = run;
  const back = backup === undefined ? '' : wayBack({ from, backup });
  if (run.step === 'done') return t`nanobot was updated from ${from} to ${to}.`;
  if (run.step === 'rolled-back') {
    return t`The update to ${to} was rolled back: ${reason}. Version ${from} runs again.`;
  }
  return (
    t`The update to ${to} went wrong: ${reason}. It stays, because messages came since it changed ` +
    t`the home, and ${from} cannot read it now. ${back}`
  );
}
