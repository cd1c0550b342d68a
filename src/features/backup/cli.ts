// The command `nanobot backup`.

import { createWriteStream, existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Command } from 'commander';
import { momentText } from '../../cli/flag-values.ts';
import {
  CommandFailure,
  confirmOrStop,
  EXIT,
  type Terminal,
  textTable,
  untilStopped,
} from '../../cli/terminal.ts';
import type { Config } from '../../kernel/config/config.ts';
import { type Home, homeOf, PROGRAM } from '../../kernel/config/files/home.ts';
import { makeFolder } from '../../lib/files/files.ts';
import { t } from '../../lib/texts.ts';
import type { Place, PlaceOptions } from './places.ts';
import type { Encryption, Unlock } from './repository.ts';

const PASSPHRASE = 'passphrase';
/** As a schedule: the place is remembered. */
const NEVER = 'never';
const PASSPHRASE_VARIABLE = 'NANOBOT_BACKUP_PASSPHRASE';
const IDENTITY_VARIABLE = 'NANOBOT_BACKUP_IDENTITY';
const MEGABYTE = 1_000_000;

export type KeyFlags = { readonly passphraseFile?: string; readonly identity?: string };
type FromFlags = KeyFlags & { readonly from?: string };
type CreateFlags = {
  readonly to?: string;
  readonly encrypt?: readonly string[];
  readonly every?: string;
  readonly keep?: string;
  readonly passphraseFile?: string;
};
type RestoreFlags = FromFlags & {
  readonly into?: string;
  readonly force?: boolean;
  readonly takesOver?: boolean;
  readonly json?: boolean;
};

export function backupCommand(terminal: Terminal): Command {
  const command = new Command('backup').description(
    t`back up the home, verify and restore back-ups`,
  );
  command.addCommand(
    new Command('create')
      .description(t`make a back-up; the gateway may run`)
      .option(
        '--to <place>',
        t`a folder, s3://bucket/prefix, a file *.tar, or - for standard output`,
      )
      .option('--encrypt <who...>', t`recipients of age (age1...), or the word passphrase`)
      .option(
        '--every <span>',
        t`from now on the gateway makes one every hour, day, week or e.g. 12h; never: only on request`,
      )
      .option('--keep <rule>', t`which ones stay, e.g. 7d4w6m: days, weeks, months`)
      .option('--passphrase-file <file>', t`file with the passphrase`)
      .action((flags: CreateFlags) => create(terminal, flags)),
  );
  command.addCommand(
    fromOptions(new Command('list'), false)
      .description(t`list the back-ups in a place`)
      .option('--json', t`print as JSON`)
      .action((flags: FromFlags & { readonly json?: boolean }) => list(terminal, flags)),
  );
  command.addCommand(
    fromOptions(new Command('verify'))
      .description(t`restore a back-up into a temporary folder, start a gateway there and count`)
      .argument('[id]', t`the back-up; default: the newest`)
      .option('--temp <folder>', t`where there is room for all files; default: beside the home`)
      .action((id: string | undefined, flags: FromFlags & { readonly temp?: string }) =>
        verify(terminal, id, flags),
      ),
  );
  command.addCommand(
    fromOptions(new Command('restore'))
      .description(t`restore a back-up`)
      .argument('[id]', t`the back-up, a file *.tar, or - for standard input; default: the newest`)
      .option('--into <folder>', t`the home to restore; default: the home in use`)
      .option('--force', t`set aside what is in the home`)
      .option('--takes-over', t`accounts that run in one place only continue here`)
      .option('--json', t`print as JSON`)
      .action((id: string | undefined, flags: RestoreFlags) => restore(terminal, id, flags)),
  );
  command.addCommand(
    new Command('takeover')
      .description(t`run here the accounts that run in one place only`)
      .option('-y, --yes', t`do not ask for confirmation`)
      .action(({ yes }: { readonly yes?: boolean }) => takeOverHere(terminal, yes === true)),
  );
  return command;
}

function fromOptions(command: Command, withKeys = true): Command {
  command.option(
    '--from <place>',
    t`a folder, s3://bucket/prefix or a file *.tar; default: backup.to`,
  );
  if (!withKeys) return command;
  return command
    .option('--identity <file>', t`file with the age identity that opens an encrypted one`)
    .option('--passphrase-file <file>', t`file with the passphrase`);
}

// Places and keys.

async function configOf({ home, env }: Terminal): Promise<Config> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  return (await loadConfig(home, env)).config;
}

/** A broken configuration must not keep anybody from restoring. */
export async function placeOptions(terminal: Terminal, isNeeded: boolean) {
  const { backupSchema } = await import('../../kernel/config/limits.ts');
  const config = await configOf(terminal).catch((error: unknown) => {
    if (isNeeded) throw error;
    return undefined;
  });
  const settings = config?.backup ?? backupSchema.parse({});
  const options: PlaceOptions = {
    env: terminal.env,
    s3: settings.s3,
    proxy: config?.network.proxy ?? '',
    stream: terminal.output,
  };
  return { settings, options };
}

function needPlace(place: string, flag: '--to' | '--from'): string {
  if (place !== '') return place;
  throw new CommandFailure(
    EXIT.usage,
    t`Name a place: ${flag} /media/disk/nanobot or s3://bucket/prefix, or set backup.to.`,
  );
}

async function passphraseOf(terminal: Terminal, file: string | undefined, isNew: boolean) {
  const given =
    file === undefined ? terminal.env[PASSPHRASE_VARIABLE] : await readFile(resolve(file), 'utf8');
  const known = (given ?? '').replace(/\r?\n$/, '');
  if (known !== '') return known;
  if (!terminal.interactive) {
    throw new CommandFailure(
      EXIT.usage,
      t`The passphrase is needed: set ${PASSPHRASE_VARIABLE}, or --passphrase-file <file>.`,
    );
  }
  const { password } = await import('@clack/prompts');
  const ask = async (message: string) => {
    const answer = await password({ message });
    if (typeof answer !== 'string' || answer === '') {
      throw new CommandFailure(EXIT.interrupted, t`Cancelled; nothing changed.`);
    }
    return answer;
  };
  const typed = await ask(t`Passphrase of the back-ups`);
  if (isNew && (await ask(t`Once more; without it nobody can restore them`)) !== typed) {
    throw new CommandFailure(EXIT.usage, t`The two passphrases differ.`);
  }
  return typed;
}

export async function encryptionOf(
  terminal: Terminal,
  who: readonly string[],
  place: Place,
  passphraseFile: string | undefined,
): Promise<Encryption | undefined> {
  if (who.length === 0) return undefined;
  if (who.join() !== PASSPHRASE) return { kind: 'recipients', recipients: who };
  const { hasRepository } = await import('./repository.ts');
  const isNew = !(await hasRepository(place));
  // The later ones need its public half only.
  const passphrase = isNew ? await passphraseOf(terminal, passphraseFile, true) : '';
  return { kind: 'passphrase', passphrase };
}

function unlockOf(terminal: Terminal, { identity, passphraseFile }: KeyFlags): Unlock {
  return async (kind) => {
    if (kind === 'passphrase') {
      return { kind, passphrase: await passphraseOf(terminal, passphraseFile, false) };
    }
    const file = identity ?? terminal.env[IDENTITY_VARIABLE] ?? '';
    if (file === '') {
      throw new CommandFailure(
        EXIT.usage,
        t`These back-ups are encrypted: name the file with your age identity, --identity <file>.`,
      );
    }
    const lines = (await readFile(resolve(file), 'utf8')).split('\n').map((line) => line.trim());
    return { kind, identity: lines.find((line) => line.startsWith('AGE-SECRET-KEY-')) ?? '' };
  };
}

/** Shows how far it is, for a person at a terminal. */
export function progressOf(what: string): (bytes: number) => void {
  const { stderr } = process;
  if (!stderr.isTTY) return () => undefined;
  let shown = -1;
  return (bytes) => {
    const megabytes = Math.floor(bytes / MEGABYTE);
    if (megabytes === shown) return;
    shown = megabytes;
    stderr.write(`\r${what}: ${sizeText(bytes)} `);
  };
}

const sizeText = (bytes: number) => `${(bytes / MEGABYTE).toFixed(1)} MB`;

export async function work<Result>(run: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  try {
    return await untilStopped(() => undefined, run);
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    throw new CommandFailure(EXIT.interrupted, t`Cancelled.`);
  }
}

// Creating and listing.

export async function create(terminal: Terminal, flags: CreateFlags): Promise<void> {
  const { openPlace } = await import('./places.ts');
  const { createBackup } = await import('./create.ts');
  const { writeRecord } = await import('./index.ts');
  const { storeSetting } = await import('../../kernel/home-state.ts');
  const { home } = terminal;
  if (!existsSync(home.config)) {
    throw new CommandFailure(EXIT.notFound, t`there is nothing to back up in ${home.root}`);
  }
  const { settings, options } = await placeOptions(terminal, true);
  const to = needPlace(flags.to ?? settings.to, '--to');
  const isScheduled = ![NEVER, ''].includes(flags.every ?? settings.every);
  const keep = await keepFor(flags, isScheduled ? settings.keep : '');
  const who = flags.encrypt ?? settings.encrypt.split(/\s+/).filter((each) => each !== '');
  await using place = await openPlace(to, options);
  const made = await work(async (signal) => {
    const encrypt = await encryptionOf(terminal, who, place, flags.passphraseFile);
    const onProgress = progressOf(t`Reading`);
    const created = await createBackup({ home, place, encrypt, signal, onProgress });
    if (!place.isStream && keep !== undefined) await pruneAfter(home, place, keep, signal);
    return created;
  });
  if (flags.every !== undefined) await keepSchedule(terminal, { ...flags, to });
  if (to === '-') return;
  const at = terminal.clock.now();
  const { id, bytes } = made;
  await writeRecord(home, { made: { id, at, to, bytes }, failing: undefined });
  terminal.tell(
    t`Back-up ${id} in ${place.name}: ${made.files} files, ${sizeText(bytes)}; ${sizeText(made.storedBytes)} new.`,
  );
  if ((await storeSetting(home, terminal.env)).engine === 'postgres') {
    terminal.tell(
      t`The store is on PostgreSQL and is not in it: back it up with pg_dump before the files.`,
    );
  }
  if (flags.every !== undefined && flags.every !== NEVER) {
    terminal.tell(t`The gateway makes the next ones by itself, every ${flags.every}.`);
  }
}

async function keepFor({ every, keep }: CreateFlags, usual: string) {
  const { everyMs, keepOf } = await import('./index.ts');
  if (every !== undefined && every !== NEVER && everyMs(every) === undefined) {
    throw new CommandFailure(
      EXIT.usage,
      t`--every ${every}: use hour, day, week, e.g. 12h, or never.`,
    );
  }
  if (keep !== undefined && keepOf(keep) === undefined) {
    throw new CommandFailure(EXIT.usage, t`--keep ${keep}: use days, weeks, months, e.g. 7d4w6m.`);
  }
  return keepOf(keep ?? usual);
}

async function pruneAfter(
  home: Home,
  place: Place,
  keep: NonNullable<Awaited<ReturnType<typeof keepFor>>>,
  signal: AbortSignal,
): Promise<void> {
  const { prune } = await import('./repository.ts');
  const { ensureInstance } = await import('../../kernel/instance.ts');
  await prune(place, (await ensureInstance(home)).id, keep, signal);
}

async function keepSchedule({ home, env }: Terminal, flags: CreateFlags & { readonly to: string }) {
  const { readRawConfig, saveConfig, withSettings } = await import(
    '../../kernel/config/files/config-file.ts'
  );
  const to = flags.to.startsWith('s3://') ? flags.to : resolve(flags.to);
  if (to.endsWith('.tar') || flags.to === '-') {
    throw new CommandFailure(EXIT.usage, t`A schedule needs a folder or an S3 bucket: --to.`);
  }
  const values = {
    to,
    every: flags.every === NEVER ? '' : flags.every,
    keep: flags.keep,
    encrypt: flags.encrypt?.join(' '),
  };
  const settings = Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [[`backup.${name}`, value]],
    ),
  );
  await saveConfig(home, withSettings(await readRawConfig(home), settings, env), env);
}

async function list(terminal: Terminal, flags: FromFlags & { readonly json?: boolean }) {
  const { readPlace } = await import('./places.ts');
  const { snapshots } = await import('./repository.ts');
  const { settings, options } = await placeOptions(terminal, flags.from === undefined);
  await using place = await readPlace(needPlace(flags.from ?? settings.to, '--from'), options);
  const all = await snapshots(place);
  if (flags.json === true) {
    return terminal.printJson(all.map(({ list: _list, chunks: _chunks, ...one }) => one));
  }
  if (all.length === 0) return terminal.tell(t`There are no back-ups in ${place.name}.`);
  const rows = all.map((one) => [
    one.id,
    momentText(Date.parse(one.at)),
    t`${one.files} files`,
    sizeText(one.bytes),
  ]);
  for (const line of textTable(rows)) terminal.print(line);
}

// Verifying.

export async function verify(
  terminal: Terminal,
  id: string | undefined,
  flags: FromFlags & { readonly temp?: string },
): Promise<void> {
  const { readPlace } = await import('./places.ts');
  const { verifyBackup } = await import('./restore.ts');
  const { writeRecord } = await import('./index.ts');
  const { home, env } = terminal;
  const { settings, options } = await placeOptions(terminal, flags.from === undefined);
  await using place = await readPlace(needPlace(flags.from ?? settings.to, '--from'), options);
  const verified = await work((signal) =>
    verifyBackup({
      ...{ place, id, env, signal, unlock: unlockOf(terminal, flags) },
      temp: flags.temp === undefined ? dirname(home.root) : resolve(flags.temp),
      command: [process.execPath, PROGRAM],
      onProgress: progressOf(t`Restoring`),
    }),
  );
  const at = terminal.clock.now();
  if (existsSync(home.root)) {
    await writeRecord(home, { verified: { id: verified.id, at, ok: verified.ok } });
  }
  if (!verified.ok) {
    for (const problem of verified.problems) terminal.note(problem);
    throw new CommandFailure(EXIT.failure, t`Back-up ${verified.id} did not stand the test.`);
  }
  const { messages, sessions, rows } = verified.counts;
  const count = Object.values(rows).reduce((sum, each) => sum + each, 0);
  terminal.tell(
    t`Back-up ${verified.id} is good: a gateway started on it and answered. ` +
      t`Messages: ${messages}, sessions: ${sessions}, rows: ${count}; none is missing.`,
  );
}

// Restoring.

async function restore(terminal: Terminal, what: string | undefined, flags: RestoreFlags) {
  const into = flags.into === undefined ? terminal.home : homeOf({ NANOBOT_HOME: flags.into });
  const { discardStaged, refuseUnlessEmpty, restoreBackup } = await import('./restore.ts');
  const { readPlace } = await import('./places.ts');
  await refuseUnlessEmpty(into, flags.force === true);
  const isPlace = what === '-' || what?.endsWith('.tar') === true;
  const { settings, options } = await placeOptions(terminal, false);
  const restored = await work(async (signal) => {
    const from = what === '-' ? await spool(terminal, into, signal) : isPlace ? what : flags.from;
    await using place = await readPlace(needPlace(from ?? settings.to, '--from'), options);
    return await restoreBackup({
      ...{ place, into, signal, unlock: unlockOf(terminal, flags) },
      ...{ id: isPlace ? undefined : what, force: flags.force, takesOver: flags.takesOver },
      onProgress: progressOf(t`Restoring`),
    });
  }).catch(async (error: unknown) => {
    await discardStaged(into);
    throw error;
  });
  if (flags.json === true) return terminal.printJson(restored);
  const { id, at, files, bytes, setAside } = restored;
  const moment = momentText(Date.parse(at));
  terminal.tell(
    t`Restored ${id} of ${moment} into ${into.root}: ${files} files, ${sizeText(bytes)}.`,
  );
  if (setAside !== undefined) terminal.tell(t`What was there is in ${setAside}.`);
  if (!restored.isHeld) return;
  for (const line of await heldLines(into)) terminal.tell(line);
}

/** The stream is read at several places, so it is kept as a file until it is restored. */
async function spool(terminal: Terminal, into: Home, signal: AbortSignal): Promise<string> {
  const { writing } = await import('./places.ts');
  await makeFolder(into.restoring);
  const path = join(into.restoring, 'stream.tar');
  try {
    await writing(into.root, () =>
      pipeline(terminal.input, createWriteStream(path, { mode: 0o600 }), { signal }),
    );
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
  return path;
}

async function heldLines(home: Home): Promise<readonly string[]> {
  const { enabledOnce } = await import('../../channels/index.ts');
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const loaded = await loadConfig(home, process.env).catch(() => undefined);
  const accounts = loaded === undefined ? [] : enabledOnce(loaded.config.channels);
  if (accounts.length === 0) return [];
  return [
    t`${accounts.join(', ')} stays off here: its keys run in one place only, and the original may still run.`,
    t`If the original does not run any more: nanobot backup takeover`,
  ];
}

async function takeOverHere(terminal: Terminal, yes: boolean): Promise<void> {
  const { readInstance } = await import('../../kernel/instance.ts');
  const { takeOver } = await import('./restore.ts');
  const { home } = terminal;
  const held = (await readInstance(home))?.held;
  if (held === undefined) return terminal.tell(t`All accounts run here already.`);
  const where = held.elsewhere ?? t`the home that was backed up`;
  await confirmOrStop(
    terminal,
    t`Two homes with the same keys disconnect each other. Is the gateway of ${where} stopped for good?`,
    yes,
  );
  await takeOver(home);
  terminal.tell(t`All accounts run here from now on. Start the gateway again.`);
}
