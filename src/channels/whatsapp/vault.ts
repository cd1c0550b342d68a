// The linked account's credentials and Signal keys, durable and never confused: a damaged record is
// not an absent one, and a new identity begins only when a person asks for it.

import type {
  AuthenticationCreds,
  AuthenticationState,
  SignalCreds,
  SignalDataSet,
} from '@whiskeysockets/baileys';
import type { KeyValueChange } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import {
  createTextOf,
  credsOf,
  dropLink,
  freshIdentity,
  type Identity,
  isLinked,
  isSameButForCounters,
  type LinkedAccount,
  lastOpened,
  linkedAccountOf,
  makeSpare,
  readStart,
  type Spare,
  setLinkAside,
  skipUsedIds,
  textOf,
  withGeneration,
} from './creds.ts';
import { type Unit, UnitQueue, type UnitRows } from './rows.ts';
import { createUnitKeys, KEY_PREFIX, KeyRows } from './signal-keys.ts';

/** Code of the error for a stored link that cannot be read. */
export const LINK_DAMAGED = 'whatsapp_link_damaged';

type VaultDeps = Pick<ChannelHost, 'state' | 'clock' | 'log'>;

/** @throws ChannelError `whatsapp_link_damaged` if no generation of a stored link is readable */
export async function openVault(deps: VaultDeps): Promise<Vault> {
  const start = await readStart(deps.state);
  if (start.kind === 'damaged') {
    const problem = t`The stored link to the WhatsApp account is damaged. Link again with \`nanobot channels login whatsapp\`.`;
    throw new ChannelError(LINK_DAMAGED, problem, { remedy: NEVER });
  }
  if (start.kind === 'half_made') await deps.state.setMany(await dropLink(deps.state));
  if (start.kind !== 'stored') return new Vault(deps, freshIdentity());
  const vault = new Vault(deps, start.identity);
  await vault.begin(start.setAside);
  return vault;
}

/** For a login after `openVault` found damage: sets what is stored aside and begins anew. */
export async function openFreshVault(deps: VaultDeps): Promise<Vault> {
  await deps.state.setMany(await setLinkAside(deps.state, deps.clock.now()));
  return openVault(deps);
}

export class Vault {
  readonly #deps: VaultDeps;
  readonly #rows: KeyRows;
  readonly #queue: UnitQueue;
  readonly #textOf = createTextOf();
  #identity: Identity;
  #auth: AuthenticationState;

  constructor(deps: VaultDeps, identity: Identity) {
    this.#deps = deps;
    this.#rows = new KeyRows(deps.log);
    this.#queue = new UnitQueue(deps.state, (rows) => this.#commit(rows));
    this.#identity = identity;
    this.#auth = this.#authOf(identity.creds);
  }

  /** What Baileys runs on; replaced by reset and rollBack. `creds` is live. */
  get auth(): AuthenticationState {
    return this.#auth;
  }

  /** Undefined unless the pairing is complete. */
  get account(): LinkedAccount | undefined {
    return linkedAccountOf(this.#identity.creds);
  }

  /** Makes changed creds durable. */
  save(): Promise<void> {
    return this.#queue.run(async () => {});
  }

  /** Marks this generation as one that opened a connection and can be restored. */
  confirm(): Promise<void> {
    return this.#alone(async () => {
      const { creds, kept, number } = this.#identity;
      const text = textOf(creds);
      const same = kept[0]?.text === text ? kept[0] : undefined;
      if (same?.openedAt !== undefined) return;
      const openedAt = this.#deps.clock.now();
      const opened = { number: same?.number ?? number + 1, text, openedAt };
      const { identity, rows } = withGeneration(this.#identity, opened);
      await this.#deps.state.setMany(rows);
      this.#identity = identity;
    });
  }

  /** Back to the last generation that opened, if it differs from the used one; false if none. */
  rollBack(): Promise<boolean> {
    return this.#alone(async (unit) => {
      const opened = lastOpened(this.#identity);
      const older = opened === undefined ? undefined : credsOf(opened);
      if (older === undefined || isSameButForCounters(this.#identity.creds, older)) return false;
      unit.putAll(await skipUsedIds(this.#deps.state, older));
      this.#replace({ ...this.#identity, creds: older });
      return true;
    });
  }

  /** Sets creds and keys aside under `old/<time>/` (the newest 3 stay); begins with fresh ones. */
  reset(): Promise<void> {
    return this.#alone(async () => {
      const { state, clock } = this.#deps;
      const isKept = isLinked(this.#identity.creds);
      await state.setMany(isKept ? await setLinkAside(state, clock.now()) : await dropLink(state));
      this.#rows.forget();
      this.#replace(freshIdentity());
    });
  }

  /** Resolves when all writes are on disk, with none after it: a later vault owns the rows. */
  close(): Promise<void> {
    // Current credentials become invalid for everything that still holds them.
    return this.#alone(async () => this.#replace(freshIdentity()));
  }

  /** libsignal's keys for the socket made with these creds, and the units of work of its calls. */
  signalUnits(creds: SignalCreds) {
    const { state, log } = this.#deps;
    const { store, within } = createUnitKeys(this.#rows, state, log);
    return {
      keys: store,
      /**
       * Runs alone. When this resolves, what was written is on disk, with the credentials if they
       * changed, in one transaction; nothing of a task that throws is.
       * @throws ChannelError `whatsapp_not_saved`, or `whatsapp_link_replaced` after a reset
       */
      run: <T>(task: (unit: Unit) => Promise<T>): Promise<T> =>
        this.#queue.run((unit) => {
          if (creds === this.#identity.creds) return within(unit, () => task(unit));
          const problem = 'These WhatsApp credentials are no longer in use.';
          throw new ChannelError('whatsapp_link_replaced', problem, { remedy: BACKOFF });
        }),
    };
  }

  health() {
    const { number, recoveredFrom } = this.#identity;
    return {
      /** 0 before the first write. */
      generation: number,
      /** When a stored generation last opened a connection, epoch milliseconds. */
      openedAt: lastOpened(this.#identity)?.openedAt,
      /** The generation that was found damaged when the vault was opened. */
      recoveredFrom,
      /** Keys found unreadable and not replaced since. */
      damagedRecords: this.#rows.damaged,
    };
  }

  /** Runs once at the start: sets damaged generations aside and makes counters safe. */
  begin(setAside: readonly KeyValueChange[]): Promise<void> {
    return this.#alone(async (unit) => {
      unit.putAll(setAside);
      const { creds } = this.#identity;
      if (isLinked(creds)) unit.putAll(await skipUsedIds(this.#deps.state, creds));
    });
  }

  #alone<T>(task: (unit: Unit) => Promise<T>): Promise<T> {
    return this.#queue.run(task, true);
  }

  #replace(identity: Identity): void {
    this.#identity = identity;
    this.#auth = this.#authOf(identity.creds);
  }

  #authOf(creds: AuthenticationCreds): AuthenticationState {
    const { state } = this.#deps;
    const clear = async (unit: Unit) => {
      const stored = await state.list(KEY_PREFIX);
      unit.putAll(stored.map(({ key }) => ({ key, value: undefined })));
    };
    return {
      creds,
      keys: {
        get: (type, ids) => this.#rows.read(state, type, ids),
        set: (data) => this.#writeKeys(creds, data),
        clear: () => this.#queue.run(clear),
      },
    };
  }

  /** After the queued units of work, so that a session Baileys deletes stays deleted. */
  async #writeKeys(creds: AuthenticationCreds, data: SignalDataSet): Promise<void> {
    const rows = this.#rows.encode(data);
    let spare: Spare | undefined;
    try {
      await this.#queue.run(async (unit) => {
        // The socket of replaced credentials may no longer write.
        if (creds !== this.#identity.creds) return;
        unit.putAll(rows);
        spare = data['pre-key'] === undefined ? undefined : makeSpare(creds);
        if (spare !== undefined) unit.putAll([spare.row]);
      });
    } catch (error) {
      spare?.discard();
      throw error;
    }
  }

  /** Writes the credentials too if they changed, or if keys would be stored without any. */
  async #commit(rows: UnitRows): Promise<void> {
    const { creds, number, text: known } = this.#identity;
    const text = this.#textOf(creds);
    const isDue = text !== known || (number === 0 && rows.size > 0);
    const written = isDue
      ? withGeneration(this.#identity, { number: number + 1, text })
      : { identity: this.#identity, rows: [] };
    const all = [...rows].map(([key, value]) => ({ key, value })).concat(written.rows);
    if (all.length === 0) return;
    await this.#deps.state.setMany(all);
    this.#identity = written.identity;
  }
}
