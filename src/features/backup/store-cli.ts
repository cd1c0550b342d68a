// The command `nanobot store migrate`: copies the store between state.db and PostgreSQL and switches
// the configuration when both hold the same. Each step can be repeated after an interruption.

import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { Command, Option } from 'commander';
import { CommandFailure, EXIT, type Terminal } from '../../cli/terminal.ts';
import { holdHome } from '../../kernel/bus/store/home-lock.ts';
import type { Transfer, TransferOptions } from '../../kernel/bus/store/postgres/transfer.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { JsonObject } from '../../kernel/config/json.ts';
import { t } from '../../lib/texts.ts';
import { create, placeOptions, verify } from './cli.ts';

type Engine = 'postgres' | 'sqlite';
type Flags = { readonly to: Engine; readonly url?: string; readonly backup?: string };
type Plan = TransferOptions & {
  /** The configuration afterwards. */
  readonly raw: JsonObject;
};

/** Progress is shown each time so many rows are copied. */
const SHOWN_ROWS = 2000;

export function storeCommand(terminal: Terminal): Command {
  const command = new Command('store').description(
    t`move the state between state.db and PostgreSQL`,
  );
  command
    .command('migrate')
    .description(t`back up, copy, verify and switch the configuration; the gateway is stopped`)
    .addOption(
      new Option('--to <engine>', t`where the state goes`)
        .choices(['postgres', 'sqlite'])
        .makeOptionMandatory(),
    )
    .option('--url <variable>', t`environment variable with the address; default: store.url`)
    .option('--backup <place>', t`where the back-up goes; default: backup.to`)
    .action((flags: Flags) => migrate(terminal, flags));
  return command;
}

async function migrate(terminal: Terminal, flags: Flags): Promise<void> {
  const { home } = terminal;
  await using _held = await holdHome(home.lock, { pid: process.pid });
  const plan = await planOf(terminal, flags);
  const { isBegun } = await transferring(plan, home, (transfer) => transfer.check());
  if (!isBegun) await backUp(terminal, flags.backup);
  await transferring(plan, home, async (transfer) => {
    await transfer.check();
    await copyRows(terminal, transfer);
    await transfer.finish();
  });
  if (plan.to === 'sqlite' && !plan.isComplete) await rename(plan.path, home.state);
  const { saveConfig } = await import('../../kernel/config/files/config-file.ts');
  await saveConfig(home, plan.raw, terminal.env);
  terminal.tell(t`The configuration names the new store: ${plan.to}.`);
  if (plan.to === 'postgres') await setAside(terminal);
  terminal.tell(t`Start the gateway: nanobot gateway`);
}

/** @throws ConfigError, CommandFailure */
async function planOf({ home, env }: Terminal, { to, url: variable }: Flags): Promise<Plan> {
  const { readRawConfig } = await import('../../kernel/config/files/config-file.ts');
  const { variableOf } = await import('../../kernel/config/environment.ts');
  const { withValue } = await import('../../kernel/config/json-paths.ts');
  const { storeSetting, storeSettingIn } = await import('../../kernel/home-state.ts');
  const { ensureInstance } = await import('../../kernel/instance.ts');
  const fixed = variableOf('store.engine', env);
  if (fixed !== undefined) {
    throw new CommandFailure(
      EXIT.usage,
      t`${fixed} decides about the store. Unset it, so that the configuration can be switched.`,
    );
  }
  const written = await readRawConfig(home);
  const named =
    variable === undefined ? written : withValue(written, 'store.url', { env: variable });
  const { url } = await storeSettingIn(withValue(named, 'store.engine', 'postgres'), home, env);
  const { engine } = await storeSetting(home, env);
  const hasFile = existsSync(home.state);
  if (engine === to && !(to === 'postgres' && hasFile)) {
    throw new CommandFailure(EXIT.usage, t`The configuration names this store already: ${to}.`);
  }
  if (to === 'postgres' && !hasFile) {
    throw new CommandFailure(
      EXIT.notFound,
      t`There is no ${home.state} to copy. Set store.engine to postgres and start the gateway.`,
    );
  }
  return {
    to,
    url,
    raw: withValue(to === 'postgres' ? named : written, 'store.engine', to),
    path: to === 'postgres' || hasFile ? home.state : `${home.state}.migrating`,
    // It was interrupted between the last two steps.
    isComplete: engine === 'postgres' && hasFile,
    instance: (await ensureInstance(home)).id,
  };
}

async function transferring<Result>(
  plan: Plan,
  home: Home,
  work: (transfer: Transfer) => Promise<Result>,
): Promise<Result> {
  const { openTransfer } = await import('../../kernel/bus/store/postgres/transfer.ts');
  const { refuseOlder } = await import('../../kernel/home-state.ts');
  if (plan.path === home.state) await refuseOlder(home);
  await using transfer = await openTransfer(plan);
  return await work(transfer);
}

async function backUp(terminal: Terminal, given: string | undefined): Promise<void> {
  const { settings } = await placeOptions(terminal, true);
  const place = given ?? settings.to;
  if (place === '' || place === '-') {
    throw new CommandFailure(
      EXIT.usage,
      t`Name a place for the back-up: --backup /media/disk/nanobot, or set backup.to.`,
    );
  }
  await create(terminal, { to: place });
  await verify(terminal, undefined, { from: place });
}

async function copyRows(terminal: Terminal, transfer: Transfer): Promise<void> {
  await transfer.copy((table, copied, total) => {
    if (copied !== total && copied % SHOWN_ROWS !== 0) return;
    terminal.tell(t`Copied: ${table}, ${copied} of ${total} rows`);
  });
  for (const { table, rows, hash } of await transfer.verify()) {
    terminal.tell(t`The same on both sides: ${table}, ${rows} rows, SHA-256 ${hash.slice(0, 16)}`);
  }
}

/** The file would be taken for newer data by the gateway, and its copies for those of a later file. */
async function setAside({ home, tell }: Terminal): Promise<void> {
  const aside = `${home.state}.before-postgres`;
  for (const end of ['', '-wal', '-shm']) {
    await rm(`${aside}${end}`, { force: true });
    if (existsSync(`${home.state}${end}`)) await rename(`${home.state}${end}`, `${aside}${end}`);
  }
  const { dropSnapshots } = await import('../../kernel/bus/store/snapshot.ts');
  await dropSnapshots(home.state);
  tell(t`The earlier store is ${basename(aside)}; delete it when the gateway runs well.`);
}
