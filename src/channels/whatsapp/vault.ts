// The linked account's credentials and Signal keys, durable and never mistaken: a damaged record is not an
// absent one, and a new identity begins only when a person asks for it.

import type {
  AuthenticationCreds,
  AuthenticationState,
  SignalCreds,
  SignalDataSet,
} from '@whiskeysockets/baileys';
import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError, NEVER } from '../../kernel/message/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import {
  CredsGenerations,
  chooseStart,
  credsOf,
  dropLink,
  freshIdentity,
  type Identity,
  isLinked,
  isSameButForCounters,
  type LinkedAccount,
  linkedAccountOf,
  makeSpare,
  readGenerations,
  type Spare,
  setAsideRows,
  setLinkAside,
  skipUsedIds,
} from './creds.ts';
import { UnitQueue, type UnitRows } from './rows.ts';
import {
  clearKeys,
  createDurableKeys,
  createUnitKeys,
  KeyRows,
  putAll,
  type SignalUnits,
} from './signal-keys.ts';

/** Code of the error that says so. */
export const LINK_DAMAGED = 'whatsapp_link_damaged';

export type VaultDeps = {
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
};

export type VaultHealth = {
  /** 0 while nothing was written. */
  readonly generation: number;
  /** When a generation that is kept opened a connection last, epoch milliseconds. */
  readonly openedAt?: number;
  /** The generation that was found damaged when the vault was opened. */
  readonly recoveredFrom?: number;
  /** Keys found unreadable and not replaced since. */
  readonly damagedRecords: number;
};

/** @throws ChannelError `whatsapp_link_damaged` where a link is stored and no generation can be read */
export async function openVault(deps: VaultDeps): Promise<Vault> {
  const stored = await readGenerations(deps.state);
  const start = await chooseStart(deps.state, stored);
  if (start.kind === 'damaged') throw linkDamaged();
  if (start.kind === 'half_made') await deps.state.setMany(await dropLink(deps.state));
  if (start.kind !== 'stored') return new Vault(deps, freshIdentity());
  const { generation, recoveredFrom } = start;
  const generations = new CredsGenerations(stored);
  const vault = new Vault(deps, { creds: credsOf(generation), generations, recoveredFrom });
  await vault.begin(setAsideRows(stored.damaged));
  return vault;
}

/** For a login where `openVault` found damage: sets what is stored aside and begins anew. */
export async function openFreshVault(deps: VaultDeps): Promise<Vault> {
  await deps.state.setMany(await setLinkAside(deps.state, deps.clock.now()));
  return openVault(deps);
}

function linkDamaged(): ChannelError {
  const problem =
    'The stored link to the WhatsApp account is damaged. Link again with `nanobot channels login whatsapp`.';
  return new ChannelError(LINK_DAMAGED, problem, { remedy: NEVER });
}

export class Vault {
  readonly #deps: VaultDeps;
  readonly #rows: KeyRows;
  readonly #queue: UnitQueue;
  #identity: Identity;
  #auth: AuthenticationState;

  constructor(deps: VaultDeps, identity: Identity) {
    this.#deps = deps;
    this.#rows = new KeyRows(deps.log);
    this.#queue = new UnitQueue({ state: deps.state, commit: (rows) => this.#commit(rows) });
    this.#identity = identity;
    this.#auth = this.#authOf(identity.creds);
  }

  /** What Baileys runs on; replaced by reset and rollBack. `creds` is live. */
  get auth(): AuthenticationState {
    return this.#auth;
  }

  /** undefined unless pairing was completed. */
  get account(): LinkedAccount | undefined {
    return linkedAccountOf(this.#identity.creds);
  }

  /** Makes changed creds durable. */
  save(): Promise<void> {
    return this.#queue.run(async () => {});
  }

  /** This generation opened a connection: it is one to go back to. */
  confirm(): Promise<void> {
    return this.#queue.runAlone(async () => {
      const { creds, generations } = this.#identity;
      const change = generations.confirm(creds, this.#deps.clock.now());
      if (change === undefined) return;
      await this.#deps.state.setMany(change.rows);
      change.applied();
    });
  }

  /** Back to the last generation that opened, where it differs from the one in use; false where there is none. */
  rollBack(): Promise<boolean> {
    return this.#queue.runAlone(async (unit) => {
      const { creds, generations } = this.#identity;
      const opened = generations.lastOpened;
      if (opened === undefined || isSameButForCounters(creds, credsOf(opened))) return false;
      const older = credsOf(opened);
      putAll(unit, await skipUsedIds(this.#deps.state, older));
      this.#replace({ ...this.#identity, creds: older });
      return true;
    });
  }

  /** Sets creds and keys aside under `old/<time>/` (kept, the newest 3) and begins with fresh ones. */
  reset(): Promise<void> {
    return this.#queue.runAlone(async () => {
      const { state, clock } = this.#deps;
      const isKept = isLinked(this.#identity.creds);
      await state.setMany(isKept ? await setLinkAside(state, clock.now()) : await dropLink(state));
      this.#rows.forget();
      this.#replace(freshIdentity());
    });
  }

  /** What was written is on disk; from now on nothing is: a later vault has the rows. */
  close(): Promise<void> {
    // Whoever still holds the credentials in use holds none that count.
    return this.#queue.runAlone(async () => this.#replace(freshIdentity()));
  }

  /** For the session repository of the socket that was made with these creds. */
  signalUnits(creds: SignalCreds): SignalUnits {
    const unitKeys = createUnitKeys({ ...this.#deps, rows: this.#rows });
    return {
      keys: unitKeys.store,
      run: (task) =>
        this.#queue.run((unit) => {
          this.#assertCurrent(creds);
          return unitKeys.within(unit, () => task(unit));
        }),
    };
  }

  health(): VaultHealth {
    const { generations, recoveredFrom } = this.#identity;
    const openedAt = generations.lastOpened?.openedAt;
    return {
      generation: generations.number,
      ...(openedAt === undefined ? {} : { openedAt }),
      ...(recoveredFrom === undefined ? {} : { recoveredFrom }),
      damagedRecords: this.#rows.damaged,
    };
  }

  /** Once, with what was found at the start: damaged generations give way, counters are made safe. */
  begin(setAside: readonly KeyValueChange[]): Promise<void> {
    return this.#queue.runAlone(async (unit) => {
      putAll(unit, setAside);
      const { creds } = this.#identity;
      if (isLinked(creds)) putAll(unit, await skipUsedIds(this.#deps.state, creds));
    });
  }

  #replace(identity: Identity): void {
    this.#identity = identity;
    this.#auth = this.#authOf(identity.creds);
  }

  #authOf(creds: AuthenticationCreds): AuthenticationState {
    const keys = createDurableKeys(
      { ...this.#deps, rows: this.#rows },
      (data) => this.#writeKeys(creds, data),
      () => this.#queue.run((unit) => clearKeys(this.#deps.state, unit)),
    );
    return { creds, keys };
  }

  /** Behind the units of work under way, so that a session Baileys deletes stays deleted. */
  async #writeKeys(creds: AuthenticationCreds, data: SignalDataSet): Promise<void> {
    const rows = this.#rows.encode(data);
    let spare: Spare | undefined;
    try {
      await this.#queue.run(async (unit) => {
        // The socket of credentials that were replaced has nothing more to say.
        if (creds !== this.#identity.creds) return;
        putAll(unit, rows);
        spare = data['pre-key'] === undefined ? undefined : makeSpare(creds);
        if (spare !== undefined) putAll(unit, [spare.row]);
      });
    } catch (error) {
      spare?.discard();
      throw error;
    }
  }

  #assertCurrent(creds: SignalCreds): void {
    if (creds === this.#identity.creds) return;
    const problem = 'These WhatsApp credentials are not in use any more.';
    throw new ChannelError('whatsapp_link_replaced', problem, { remedy: BACKOFF });
  }

  async #commit(rows: UnitRows): Promise<void> {
    const { creds, generations } = this.#identity;
    const isFirst = generations.number === 0 && rows.size > 0;
    const change = isFirst ? generations.first(creds) : generations.change(creds);
    const all = [...rows].map(([key, value]) => ({ key, value })).concat(change?.rows ?? []);
    if (all.length === 0) return;
    await this.#deps.state.setMany(all);
    change?.applied();
  }
}
