// Reduces what Baileys logs to what may be written: warnings and errors under one fixed message
// each, the beginning of the library's own text, and a few harmless fields. Never keys, stanzas,
// credentials or addresses. A repeated line is written once a minute with its count.

import { Agent as PlainAgent } from 'node:http';
import { Agent } from 'node:https';
import type { Duplex } from 'node:stream';
import type { SocketConfig } from '@whiskeysockets/baileys';
import { ChannelError, NEVER } from '../../kernel/message/errors.ts';
import type { LogFields } from '../../lib/logger.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { routed, watchConnections } from '../../lib/net/proxies.ts';
import type { ChannelHost } from '../channel.ts';

type BaileysLogger = SocketConfig['logger'];

const REPEAT_MS = 60_000;
const MAX_WORDS_CHARS = 80;
/** Different lines remembered within a minute; the library has about a hundred. */
const MAX_KINDS = 256;
/** Numbers only, whatever the library puts there. */
const NUMBER_FIELDS = ['count', 'retryCount', 'statusCode', 'version'] as const;
const ERROR_FIELDS = ['err', 'error', 'e', 'uploadError', 'ackErr'] as const;
/** An address, an id, a key or a quotation starts with one of these at the latest. */
const VARIABLE_PART = /[^A-Za-z ,;'’_()[\].—-]/;
const LONG_WORD = /\S{25,}/;
/**
 * Lines that the link reports itself in clearer text, and that the account is not shown as online,
 * which it never is.
 */
const LEFT_OUT: readonly string[] = [
  'stream errored out',
  'error in validating connection',
  'no name present, ignoring presence update request...',
];

export function createBaileysLogger(deps: Pick<ChannelHost, 'log' | 'clock'>): BaileysLogger {
  const repeats = new Map<string, { readonly since: number; suppressed: number }>();

  function write(level: 'warn' | 'error', given: unknown, text: string | undefined) {
    const words = staticWords(text ?? (typeof given === 'string' ? given : ''));
    if (LEFT_OUT.includes(words)) return;
    const suppressed = admit(`${level} ${words}`);
    if (suppressed === undefined) return;
    const fields = { words, ...harmlessFields(given), ...(suppressed === 0 ? {} : { suppressed }) };
    if (level === 'warn') deps.log.warn('whatsapp library warning', fields);
    else deps.log.error('whatsapp library error', fields);
  }

  /** How many of the kind were left out before this one; undefined: leave this one out as well. */
  function admit(kind: string): number | undefined {
    const now = deps.clock.monotonic();
    const known = repeats.get(kind);
    if (known !== undefined && now - known.since < REPEAT_MS) {
      known.suppressed += 1;
      return undefined;
    }
    if (repeats.size >= MAX_KINDS) repeats.clear();
    repeats.set(kind, { since: now, suppressed: 0 });
    return known?.suppressed ?? 0;
  }

  const logger: BaileysLogger = {
    level: 'warn',
    child: () => logger,
    trace() {},
    debug() {},
    info() {},
    warn: (given, text) => write('warn', given, text),
    error: (given, text) => write('error', given, text),
  };
  return logger;
}

/** The text up to the first thing that may be a value. */
function staticWords(text: string): string {
  const end = Math.min(endBefore(text, VARIABLE_PART), endBefore(text, LONG_WORD));
  return text.slice(0, Math.min(end, MAX_WORDS_CHARS)).trim();
}

function endBefore(text: string, pattern: RegExp): number {
  const at = text.search(pattern);
  return at === -1 ? text.length : at;
}

function harmlessFields(given: unknown): LogFields {
  if (typeof given !== 'object' || given === null) return {};
  const fields: Record<string, unknown> = {};
  for (const name of NUMBER_FIELDS) {
    const value = Reflect.get(given, name);
    if (typeof value === 'number') fields[name] = value;
  }
  const error = ERROR_FIELDS.map((name) => Reflect.get(given, name)).find(isError);
  if (error === undefined) return fields;
  return { ...fields, errorName: staticWords(error.name), errorWords: staticWords(error.message) };
}

const isError = (value: unknown): value is Error => value instanceof Error;

// libsignal prints whole session objects, including private ratchet keys, to the console. While
// this filter is active its calls are dropped and counted; all others pass. Restored on dispose.

const METHODS = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const;
const LIBSIGNAL = /[\\/]node_modules[\\/]libsignal[\\/]/;
/** The caller of a console method is the frame directly above ours. */
const FRAMES = 2;

export function quietConsole(target: Console = console) {
  const state = { isOn: true, dropped: 0 };
  const undo = METHODS.map((method) => {
    const original = target[method];
    const filter = (...values: unknown[]) => {
      if (state.isOn && isFromLibsignal(filter)) state.dropped += 1;
      else original.apply(target, values);
    };
    target[method] = filter;
    return () => {
      // Who replaced the method after us still calls the filter, which then lets all pass.
      if (target[method] === filter) target[method] = original;
    };
  });
  return {
    /** Calls dropped so far. */
    get dropped(): number {
      return state.dropped;
    },
    [Symbol.dispose]() {
      state.isOn = false;
      for (const restore of undo) restore();
    },
  };
}

function isFromLibsignal(callee: (...values: unknown[]) => void): boolean {
  const limit = Error.stackTraceLimit;
  const here: { stack?: string } = {};
  Error.stackTraceLimit = FRAMES;
  Error.captureStackTrace(here, callee);
  Error.stackTraceLimit = limit;
  return LIBSIGNAL.test(here.stack ?? '');
}

// The TCP connections of the WhatsApp library, controlled through its agent options: which
// addresses they may reach, cutting the one under a socket, and holding it back while new
// credentials become durable. TLS is the only thing that authenticates WhatsApp's server:
// certificate checks are never switched off, and an unencrypted connection stays on this machine.

/** @throws ChannelError with remedy `never` for an address that is not allowed. */
export function parseSocketUrl(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'wss:') return url;
  if (url?.protocol === 'ws:' && isLoopbackHost(url.hostname)) return url;
  const problem = 'channels.whatsapp.socketUrl must be wss:, or ws: on a loopback address';
  throw new ChannelError('whatsapp_settings', problem, { remedy: NEVER });
}

export type Carrier = ReturnType<typeof createCarrier>;

export function createCarrier(url: URL, proxy: string) {
  // On loopback there is no TLS; the library's type knows only the TLS agent. Elsewhere the check
  // is set explicitly, because an environment variable could otherwise switch it off.
  const own =
    url.protocol === 'wss:' ? new Agent({ rejectUnauthorized: true }) : (new PlainAgent() as Agent);
  const agent = routed(own, proxy);
  const lines = new Set<Duplex>();
  watchConnections(agent, (line) => {
    lines.add(line);
    line.once('close', () => lines.delete(line));
  });
  const cut = () => {
    for (const line of lines) line.destroy();
  };
  return {
    agent,
    /** Ends the connection without asking the other side. */
    cut,
    /** Holds outgoing bytes back until the work is done; if it fails, the connection is cut. */
    holdDuring(work: Promise<unknown>): void {
      const held = [...lines];
      for (const line of held) line.cork();
      work.then(() => {
        for (const line of held) line.uncork();
      }, cut);
    },
  };
}

/** For the media host. */
export const mediaAgent = (proxy: string): Agent =>
  routed(new Agent({ rejectUnauthorized: true }), proxy);

const MEDIA_HOSTS = /(?:^|\.)whatsapp\.net$/i;

/**
 * For uploads. The library follows redirects, also to other hosts and without TLS: those are
 * refused.
 * @param socket the URL of the account's connection: if it is on this machine, its media host is
 * too
 */
export function createUploadAgent(socket: URL, proxy: string): Agent {
  const agent = mediaAgent(proxy);
  const connect = agent.createConnection.bind(agent);
  const isAllowed = (host: string) =>
    isLoopbackHost(socket.hostname) ? host === socket.hostname : MEDIA_HOSTS.test(host);
  agent.createConnection = (options, callback) => {
    if (isAllowed(options.host ?? '')) return connect(options, callback);
    throw new Error('an upload leads to a host that is not WhatsApp’s');
  };
  return agent;
}
