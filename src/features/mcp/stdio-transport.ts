// Runs a tool server as a child process: one JSON-RPC message per line on stdin and stdout (MCP
// specification 2025-06-18, transports, stdio). The child gets no environment variable beyond those
// given, its output is bounded, and it ends with all its descendants.

import type { ChildProcess } from 'node:child_process';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { neutralLines } from '../../kernel/message/untrusted.ts';
import { inTime } from '../../lib/async.ts';
import { isOver, killGroup, signalProcess, spawnGroup } from '../../lib/process-group.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';

type StdioOptions = {
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly flood: FloodGuard;
  /** Checks the shape of a message. @throws for anything else */
  readonly parse: (line: string) => JSONRPCMessage;
};

const MAX_LINE_BYTES = 8_000_000;
/** Kept of stderr, for the reason of a failure. */
const MAX_STDERR_CHARS = 4000;
const MAX_WORDS_CHARS = 200;
/** Time to exit after stdin is closed, and again after SIGTERM. */
const GRACE_MS = 1000;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #options: StdioOptions;
  readonly #lines = new LineReader(MAX_LINE_BYTES);
  readonly #gone = Promise.withResolvers<void>();
  #child: ChildProcess | undefined;
  #stderr = '';
  #fault: string | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
  }

  /** Why it ended, for an owner; undefined where unknown. */
  get fault(): string | undefined {
    return this.#fault ?? this.#lastWords();
  }

  /** @throws Error where the program cannot be started */
  async start(): Promise<void> {
    const { argv, cwd, env } = this.#options;
    const child = spawnGroup(argv, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    child.stdin?.on('error', () => undefined);
    child.stdout?.on('data', (piece: Buffer) => this.#hear(piece));
    child.stderr?.setEncoding('utf8').on('data', (words: string) => {
      this.#stderr = (this.#stderr + words).slice(-MAX_STDERR_CHARS);
    });
    // A descendant that is still running may hold stdout open.
    child.on('exit', () => killGroup(child));
    child.on('close', () => this.#ended());
    await new Promise<void>((resolve, reject) => {
      child.on('spawn', resolve);
      child.on('error', (error: NodeJS.ErrnoException) => {
        this.#fault =
          error.code === 'ENOENT'
            ? 'the program, or the folder it runs in, was not found'
            : `the program cannot be run (${error.code ?? 'unknown'})`;
        if (child.pid === undefined) this.#ended();
        reject(error);
      });
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (!stdin?.writable) return Promise.reject(new Error('the server has ended'));
    return new Promise((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  /** Resolves when the child and its descendants are gone. */
  async close(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return this.#ended();
    child.stdin?.end();
    if (!(await this.#endsSoon()) && child.pid !== undefined) {
      signalProcess(-child.pid, 'SIGTERM');
      await this.#endsSoon();
    }
    this.#kill();
    await this.#gone.promise;
  }

  #kill(): void {
    const child = this.#child;
    if (child === undefined) return;
    if (!isOver(child)) killGroup(child);
    child.stdout?.destroy();
    child.stderr?.destroy();
  }

  #hear(piece: Buffer): void {
    if (this.#fault !== undefined) return;
    const lines = this.#lines.read(piece);
    if (lines === undefined) this.#cutOff(t`it sent a line of more than 8 MB`);
    for (const line of lines ?? []) {
      if (this.#fault !== undefined) return;
      if (this.#options.flood.take()) this.#read(line);
      else this.#cutOff(TOO_MUCH);
    }
  }

  /** Ignores lines that are not messages: many programs print a greeting. */
  #read(line: string): void {
    if (!line.trimStart().startsWith('{')) return;
    try {
      this.onmessage?.(this.#options.parse(line));
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error('unreadable'));
    }
  }

  #cutOff(fault: string): void {
    this.#fault = fault;
    this.#kill();
  }

  #ended(): void {
    this.#child = undefined;
    this.#gone.resolve();
    const tell = this.onclose;
    delete this.onclose;
    tell?.();
  }

  async #endsSoon(): Promise<boolean> {
    return (await inTime(this.#options.clock, GRACE_MS, this.#gone.promise)) !== 'late';
  }

  #lastWords(): string | undefined {
    const lines = neutralLines(this.#stderr).map((line) => line.trim());
    const words = lines.findLast((line) => line !== '');
    return words && t`it said: ${headOf(words, MAX_WORDS_CHARS)}`;
  }
}

// Splits a byte stream into lines of bounded length. Copies nothing twice, however small the chunks
// are.

const NEWLINE = 0x0a;

export class LineReader {
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that this chunk completes; undefined where one is too long. */
  read(piece: Buffer): readonly string[] | undefined {
    const lines: string[] = [];
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      if (!this.#keep(piece.subarray(start, end))) return undefined;
      lines.push(Buffer.concat(this.#parts).toString('utf8'));
      this.#parts = [];
      this.#bytes = 0;
      start = end + 1;
    }
    return this.#keep(piece.subarray(start)) ? lines : undefined;
  }

  #keep(part: Buffer): boolean {
    if (part.length === 0) return true;
    this.#parts.push(part);
    this.#bytes += part.length;
    return this.#bytes <= this.#maxBytes;
  }
}

// Limits the message rate of a server: a burst, then a number of messages per second. More is an
// attack or a fault, and the connection ends.

/** The reason, for an owner. */
export const TOO_MUCH = t`it sent too much`;
const BURST = 5000;
const PER_SECOND = 200;

type FloodGuard = ReturnType<typeof createFloodGuard>;

export function createFloodGuard(clock: Clock) {
  let left = BURST;
  let at = clock.monotonic();
  return {
    /** False once the limit is exceeded. */
    take(): boolean {
      const now = clock.monotonic();
      left = Math.min(BURST, left + ((now - at) / 1000) * PER_SECOND);
      at = now;
      if (left < 1) return false;
      left -= 1;
      return true;
    },
  };
}
