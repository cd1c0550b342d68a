// A link with its vault on a clock that the test moves, against the WhatsApp server for tests.

import { S_WHATSAPP_NET, type WASocket } from '@whiskeysockets/baileys';
import type { LoginOptions, LoginStep } from '../../../src/channels/channel.ts';
import { openLedger } from '../../../src/channels/whatsapp/ledger.ts';
import { Link } from '../../../src/channels/whatsapp/link.ts';
import { openVault, type Vault } from '../../../src/channels/whatsapp/vault.ts';
import { createSessionRepository } from '../../../src/channels/whatsapp/whatsapp.ts';
import { createMemoryHost, type MemoryHost } from '../../support/memory-host.ts';
import { createMovableClock, type MovableClock } from '../../support/movable-clock.ts';
import type { Phone, WhatsAppServer } from '../../support/whatsapp-server/contract.ts';

const QUIET_STEP_MS = 30_000;
const STEP_TIMEOUT_MS = 45_000;
const ping = () => ({
  tag: 'iq',
  attrs: { to: S_WHATSAPP_NET, type: 'get', xmlns: 'w:p' },
  content: [{ tag: 'ping', attrs: {} }],
});

export type LinkBench = AsyncDisposable & {
  readonly link: Link;
  readonly vault: Vault;
  readonly host: MemoryHost;
  readonly clock: MovableClock;
  readonly phone: Phone;
  /** Sockets the link made, and how many of their attachments are not disposed. */
  readonly sockets: {
    readonly made: number;
    readonly attached: number;
    readonly all: readonly WASocket[];
  };
  /** Since when the ledger has a message that reached nobody, by the clock's `monotonic`. */
  stalledSince: number | undefined;
  /** Begins a login; its steps as they come. */
  begin(options?: LoginOptions): LoginWatch;
  /** Links by QR and waits until the account is online. */
  linked(): Promise<void>;
  /** Ends the run and starts another with the same state, as a restarted gateway does. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  /** Moves the clock to where the link said it would try again. */
  retry(): Promise<void>;
  /** The server has taken what the newest socket sent so far. */
  answered(): Promise<void>;
  /** All messages that came were decrypted or refused. */
  takenIn(): Promise<void>;
  /** Lets time pass on a connection on which the server answers now and then. */
  quiet(ms: number): Promise<void>;
  /** Keys of the channel's rows with that beginning. */
  rows(prefix: string): Promise<readonly string[]>;
};

export type LoginWatch = {
  readonly steps: readonly LoginStep[];
  /** The first step of the kind from now or before. */
  step<K extends LoginStep['kind']>(kind: K): Promise<Extract<LoginStep, { readonly kind: K }>>;
  first(match: (step: LoginStep) => boolean): Promise<LoginStep>;
  /** How it ended. */
  readonly end: Promise<LoginStep | undefined>;
  abort(): void;
};

export async function createLinkBench(
  server: WhatsAppServer,
  settings: { readonly socketUrl?: string; readonly phoneNumber?: string } = {},
): Promise<LinkBench> {
  const phone = await server.phone();
  const clock = createMovableClock(Date.now());
  const host = createMemoryHost(clock);
  const sockets = { made: 0, attached: 0, all: [] as WASocket[] };
  const state: { stalledSince: number | undefined; socket: WASocket | undefined } = {
    stalledSince: undefined,
    socket: undefined,
  };

  async function start() {
    const vault = await openVault(host);
    const own = () => {
      const { me } = vault.auth.creds;
      if (me === undefined) return undefined;
      return { id: me.id, ...(me.lid === undefined ? {} : { lid: me.lid }) };
    };
    const ledger = await openLedger({ ...host, own });
    const stalledMs = () =>
      state.stalledSince === undefined
        ? ledger.stalledMs()
        : clock.monotonic() - state.stalledSince;
    const link = new Link({
      vault,
      ledger: { stalledMs },
      settings: { socketUrl: server.url, phoneNumber: '', proxy: '', ...settings },
      host,
      onReady: () => undefined,
      random: () => 0,
      getMessage: async () => undefined,
      cachedGroupMetadata: async () => undefined,
      makeSignalRepository: createSessionRepository({ ...host, vault, ledger }),
      onSocket(socket) {
        sockets.made += 1;
        sockets.attached += 1;
        state.socket = socket;
        sockets.all.push(socket);
        socket.ws.prependListener('CB:message', (stanza) => ledger.observe(stanza));
        return {
          [Symbol.dispose]() {
            sockets.attached -= 1;
            ledger.disconnected();
          },
        };
      },
    });
    const controller = new AbortController();
    const done = link.run(controller.signal);
    done.catch(() => undefined);
    return { vault, ledger, link, controller, done };
  }

  let current = await start();
  const bench: LinkBench = {
    get link() {
      return current.link;
    },
    get vault() {
      return current.vault;
    },
    host,
    clock,
    phone,
    sockets,
    get stalledSince() {
      return state.stalledSince;
    },
    set stalledSince(value) {
      state.stalledSince = value;
    },
    begin: (options = {}) => watchLogin(current.link, options),
    async linked() {
      const login = bench.begin();
      await phone.scan((await login.step('show_qr')).qr);
      await login.step('done');
      await phone.online();
    },
    async restart() {
      await bench.stop();
      current = await start();
    },
    async stop() {
      current.controller.abort();
      await current.done;
    },
    async retry() {
      const last = host.statuses.at(-1);
      if (last?.kind !== 'degraded' || last.retryAt === undefined) throw new Error('no retry');
      await clock.advance(Math.max(0, last.retryAt - clock.now()));
    },
    async quiet(ms) {
      for (let left = ms; left > 0; left -= QUIET_STEP_MS) {
        await clock.advance(Math.min(left, QUIET_STEP_MS));
        await bench.answered();
      }
    },
    async takenIn() {
      await bench.answered();
      while (current.ledger.stalledMs() !== undefined) await bench.answered();
    },
    async answered() {
      await state.socket?.query(ping());
    },
    rows: async (prefix) => (await host.state.list(prefix)).map(({ key }) => key),
    [Symbol.asyncDispose]: () => bench.stop(),
  };
  return bench;
}

function watchLogin(link: Link, options: LoginOptions): LoginWatch {
  const controller = new AbortController();
  const steps: LoginStep[] = [];
  const waiting = new Set<() => void>();
  const end = (async () => {
    for await (const step of link.login.begin(options, controller.signal)) {
      steps.push(step);
      for (const look of [...waiting]) look();
    }
    return steps.at(-1);
  })();
  const first = (match: (step: LoginStep) => boolean) =>
    new Promise<LoginStep>((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(look);
        reject(new Error(`no such step; the login showed ${JSON.stringify(steps)}`));
      }, STEP_TIMEOUT_MS);
      const look = () => {
        const found = steps.find(match);
        if (found === undefined) return;
        clearTimeout(timer);
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
    });
  return {
    steps,
    end,
    first,
    abort: () => controller.abort(),
    step: async (kind) => {
      const found = await first((step) => step.kind === kind);
      return found as Extract<LoginStep, { readonly kind: typeof kind }>;
    },
  };
}
