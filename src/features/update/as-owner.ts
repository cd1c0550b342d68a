// The update of a service of the machine. Root starts it, but what it writes belongs to the user whose home it is: the
// update runs as that user, and its parent, which stays root, controls the service and the installation for it.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, statSync } from 'node:fs';
import { chown, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { isPermitted } from '../../lib/files/files.ts';
import type { Installation } from './installation.ts';
import { type GatewayService, updateBackups } from './update.ts';

/** Of the child: its parent answers. */
export const AS_OWNER_FLAG = '--as-owner';

const callShape = z.object({
  id: z.int(),
  call: z.enum(['start', 'stop', 'install', 'switchTo', 'keepOnly']),
  versions: z.array(z.string()),
});
const answerShape = z.object({ id: z.int(), problem: z.string().optional() });

type Call = z.infer<typeof callShape>;
type Answer = z.infer<typeof answerShape>;

/** Whether root updates the home of somebody else. */
export const isForOwner = ({ root }: Home): boolean =>
  process.getuid?.() === 0 && statSync(root).uid !== 0;

/** In the parent; resolves with the exit code of the child. */
export async function updateAsOwner(
  { home, env }: { readonly home: Home; readonly env: Environment },
  service: GatewayService,
  installation: Installation,
): Promise<number> {
  const { uid, gid } = statSync(home.root);
  // The folder above the home may be root's.
  await mkdir(updateBackups(home), { recursive: true, mode: 0o700 });
  await chown(updateBackups(home), uid, gid);
  const stopping = new AbortController();
  // From a terminal the child gets it too, and ends by itself.
  process.once('SIGINT', () => stopping.abort());
  const { signal } = stopping;
  const does: Readonly<Record<Call['call'], (versions: readonly string[]) => Promise<void>>> = {
    start: () => service.start(),
    stop: () => service.stop(),
    install: ([version = '']) => installation.install(version, env, signal),
    switchTo: ([version = '', from = '']) => installation.switchTo(version, from),
    keepOnly: (versions) => installation.keepOnly(versions),
  };
  const child = spawn(process.execPath, [...process.argv.slice(1), AS_OWNER_FLAG], {
    ...{ uid, gid, env: { ...env, HOME: await homeFolderOf(uid, home) } },
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  child.on('message', async (message) => {
    const { id, call, versions } = callShape.parse(message);
    const answer = await does[call](versions).then(
      (): Answer => ({ id }),
      (error: Error): Answer => ({ id, problem: error.message }),
    );
    if (child.connected) child.send(answer);
  });
  const [code] = await once(child, 'exit');
  return Number(code ?? 1);
}

async function homeFolderOf(uid: number, home: Home): Promise<string> {
  const found = await promisify(execFile)('getent', ['passwd', String(uid)]).catch(() => undefined);
  return found?.stdout.split(':')[5] || dirname(home.root);
}

/** In the child. */
export function parentOf(name: string) {
  const waiting = new Map<number, (problem: string | undefined) => void>();
  process.on('message', (message) => {
    const { id, problem } = answerShape.parse(message);
    waiting.get(id)?.(problem);
    waiting.delete(id);
  });
  // Nobody could start the service any more; what is left is done by the next update.
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  let calls = 0;
  const ask = (call: Call['call'], versions: readonly string[] = []) =>
    new Promise<void>((resolve, reject) => {
      calls += 1;
      waiting.set(calls, (problem) => {
        if (problem === undefined) resolve();
        else reject(new NanobotError('update_failed', problem));
      });
      process.send?.({ id: calls, call, versions: [...versions] } satisfies Call);
    });
  return {
    service: { name, start: () => ask('start'), stop: () => ask('stop') },
    /** The own one, unless only root may change it. */
    async installation(own: Installation): Promise<Installation> {
      if (await isPermitted(own.prefix, constants.W_OK)) return own;
      return {
        ...own,
        install: (version) => ask('install', [version]),
        switchTo: (version, from) => ask('switchTo', [version, from]),
        keepOnly: (versions) => ask('keepOnly', versions),
      };
    },
    [Symbol.dispose]() {
      process.removeAllListeners('disconnect');
      process.disconnect();
    },
  };
}
