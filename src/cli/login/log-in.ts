// Connects a channel's account from a terminal, through the running gateway or without one: the
// progress on screen, and clean-up after Ctrl+C.

import type { LoginStep } from '../../channels/channel.ts';
import type { AccountLogin, SetupHost } from '../../features/setup/asker.ts';
import { loadConfig } from '../../kernel/config/files/config-file.ts';
import { findRunningGateway } from '../../kernel/home-state.ts';
import { type QrMatrix, qrMatrix, qrTerminalLines, qrTerminalSize } from '../../lib/qr-code.ts';
import { t } from '../../lib/texts.ts';
import { CommandFailure, EXIT, type Terminal, untilStopped } from '../terminal.ts';
import { remoteGateway, remoteLogin } from './remote-login.ts';

type LoginView = {
  readonly qr?: QrMatrix | undefined;
  readonly code?: string;
  readonly progress?: string | undefined;
};

type Room = { readonly columns: number; readonly rows: number };

type LoginLook = {
  readonly words: AccountLogin['words'];
  /** Undefined where nothing limits it, as in a file. */
  readonly room: Room | undefined;
  readonly colors: boolean;
  readonly bold: (text: string) => string;
};

const GAP = 3;
const SIDE_COLUMNS = 36;
/** Lines that must fit below the code, including the cursor's own. */
const LINES_BELOW = 2;

function loginLines(view: LoginView, look: LoginLook): readonly string[] {
  const { qr } = view;
  if (qr === undefined) return textOf(view, look, widthBelow(look.room));
  const size = qrTerminalSize(qr);
  const { room } = look;
  if (room !== undefined && !fits(size, room)) {
    return [...tooSmall(size, room), '', ...textOf(view, look, widthBelow(room))];
  }
  const code = qrTerminalLines(qr, look);
  if (room === undefined || room.columns < size.columns + GAP + SIDE_COLUMNS) {
    return [...code, ...textOf(view, look, widthBelow(room))];
  }
  const beside = textOf(view, look, room.columns - size.columns - GAP);
  const first = Math.max(0, Math.floor((code.length - beside.length) / 2));
  return code.map((line, index) => {
    const text = beside[index - first] ?? '';
    return text === '' ? line : `${line}${' '.repeat(GAP)}${text}`;
  });
}

/** Eight characters, grouped as in the WhatsApp app. */
function spacedCode(code: string): string {
  return code.length === 8 ? `${code.slice(0, 4)}-${code.slice(4)}` : code;
}

function fits(size: Room, room: Room): boolean {
  return size.columns < room.columns && size.rows + LINES_BELOW < room.rows;
}

function tooSmall(size: Room, room: Room): readonly string[] {
  const needed = t`${size.columns + 1} columns and ${size.rows + LINES_BELOW + 1} rows`;
  return [
    t`The QR code needs ${needed}; this window has ${room.columns} and ${room.rows}.`,
    t`Enlarge the window or reduce the font size; the code then appears.`,
  ];
}

const widthBelow = (room: Room | undefined) => room?.columns ?? 80;

function textOf(view: LoginView, { words, bold }: LoginLook, width: number): readonly string[] {
  const { qr, code, progress } = view;
  const parts = [
    ...(qr === undefined ? [] : [wrapped(words.scan, width)]),
    ...(code === undefined ? [] : [[...wrapped(words.type, width), `  ${bold(spacedCode(code))}`]]),
    ...(progress === undefined ? [] : [wrapped(progress, width)]),
  ];
  return parts.flatMap((part, index) => (index === 0 ? part : ['', ...part]));
}

function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (line !== '' && longer.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line];
}

// Shows the progress of a login: redrawn in place on a terminal, line after line elsewhere. The
// caller reports the result.

interface LoginScreen extends Disposable {
  show(step: LoginStep): void;
}

const ESCAPE = '\u001B';
const CLEAR_BELOW = `${ESCAPE}[0J`;

/** Disposing erases what is shown, where possible. */
export function createLoginScreen(terminal: Terminal, words: AccountLogin['words']): LoginScreen {
  return terminal.interactive ? placedScreen(terminal, words) : writtenScreen(terminal, words);
}

function placedScreen(terminal: Terminal, words: AccountLogin['words']): LoginScreen {
  const { output, clock } = terminal;
  let view: LoginView = {};
  let height = 0;
  let expiry: Disposable | undefined;

  function draw() {
    const room = { columns: output.columns, rows: output.rows };
    const bold = (text: string) => terminal.style('bold', text);
    const lines = loginLines(view, { words, room, colors: true, bold });
    output.write(`${takenAway()}${lines.map((line) => `${line}\n`).join('')}`);
    height = lines.length;
  }

  /** An expired code is not shown. */
  function expire() {
    view = { ...view, qr: undefined };
    draw();
  }

  const takenAway = () => (height === 0 ? '' : `${ESCAPE}[${height}A\r${CLEAR_BELOW}`);
  output.on('resize', draw);
  return {
    show(step) {
      view = after(view, step);
      draw();
      if (step.kind !== 'show_qr') return;
      expiry?.[Symbol.dispose]();
      expiry = clock.timer(step.expiresAt - clock.now(), expire);
    },
    [Symbol.dispose]() {
      expiry?.[Symbol.dispose]();
      output.off('resize', draw);
      output.write(takenAway());
      height = 0;
    },
  };
}

function writtenScreen(terminal: Terminal, words: AccountLogin['words']): LoginScreen {
  const bold = (text: string) => text;
  const colors = terminal.output.isTTY === true;
  const look = { words, room: undefined, colors, bold };
  return {
    show(step) {
      if (step.kind === 'progress') return terminal.note(step.text);
      if (step.kind !== 'show_qr' && step.kind !== 'show_code') return;
      for (const line of loginLines(after({}, step), look)) terminal.tell(line);
    },
    [Symbol.dispose]() {},
  };
}

function after(view: LoginView, step: LoginStep): LoginView {
  switch (step.kind) {
    case 'show_qr':
      // The first code ends the progress text before it.
      return { ...view, qr: qrMatrix(step.qr), progress: view.qr && view.progress };
    case 'show_code':
      return { ...view, code: step.code };
    case 'progress':
      return { ...view, progress: step.text };
    case 'done':
    case 'failed':
      return {};
  }
}

/**
 * Returns the connected account.
 * @throws CommandFailure with reason and remedy, or where the person stopped it
 */
export async function logIn(terminal: Terminal, login: AccountLogin): Promise<string> {
  const screen = createLoginScreen(terminal, login.words);
  const onStop = () => {
    screen[Symbol.dispose]();
    terminal.note(t`Stopping; removing the unfinished link.`);
  };
  const last = await untilStopped(onStop, (signal) => follow(terminal, login, screen, signal));
  if (last?.kind === 'done') return last.account;
  if (last?.kind === 'failed') {
    throw new CommandFailure(EXIT.failure, `${last.reason}. ${last.remedy}`);
  }
  throw new CommandFailure(EXIT.interrupted, t`Cancelled; nothing was linked.`);
}

/** The last step; undefined where the person stopped it. */
async function follow(
  terminal: Terminal,
  login: AccountLogin,
  screen: LoginScreen,
  signal: AbortSignal,
): Promise<LoginStep | undefined> {
  try {
    for await (const step of loginSteps(terminal, login, signal)) {
      if (signal.aborted) return undefined;
      if (step.kind === 'done' || step.kind === 'failed') return step;
      screen.show(step);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    screen[Symbol.dispose]();
  }
  if (signal.aborted) return undefined;
  const remedy = t`It may have restarted. Try again.`;
  return { kind: 'failed', reason: t`the gateway ended the login`, remedy };
}

/**
 * The gateway applies changed settings within a second, which would abort a login that started
 * earlier.
 */
const TAKE_UP_MS = 2500;

/** By the running gateway, else without one. */
export async function* loginSteps(
  { home, env, clock }: SetupHost,
  { channel, options, isRestarting, alone }: AccountLogin,
  signal: AbortSignal,
): AsyncGenerator<LoginStep> {
  const running = await findRunningGateway(home);
  if (running === undefined) return yield* alone(signal);
  yield { kind: 'progress', text: t`Waiting for the gateway to load the new settings.` };
  if (isRestarting) await clock.sleep(TAKE_UP_MS, signal);
  const { token } = (await loadConfig(home, env)).config.gateway;
  yield* remoteLogin(remoteGateway(running, token, clock), channel, options, signal);
}
