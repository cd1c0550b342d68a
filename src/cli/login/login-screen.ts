// Shows a login while it is under way: on a terminal in one place that is drawn anew, elsewhere line
// after line. The result is said by whoever began the login.

import type { LoginStep } from '../../channels/channel.ts';
import { qrMatrix } from '../../lib/qr-code.ts';
import type { Terminal } from '../terminal.ts';
import { type LoginView, type LoginWords, loginLines } from './login-text.ts';

export interface LoginScreen extends Disposable {
  show(step: LoginStep): void;
}

const ESCAPE = '\u001B';
const CLEAR_BELOW = `${ESCAPE}[0J`;

/** Disposing takes away what is shown, where that is possible. */
export function createLoginScreen(terminal: Terminal, words: LoginWords): LoginScreen {
  return terminal.interactive ? placedScreen(terminal, words) : writtenScreen(terminal, words);
}

function placedScreen(terminal: Terminal, words: LoginWords): LoginScreen {
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

  /** Nobody should point a phone at a code that is worth nothing any more. */
  function expire() {
    const { qr: _expired, ...rest } = view;
    view = rest;
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

function writtenScreen(terminal: Terminal, words: LoginWords): LoginScreen {
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
    case 'show_qr': {
      const qr = qrMatrix(step.qr);
      if (view.qr !== undefined) return { ...view, qr };
      // What led to the first code is over with it.
      const { progress: _over, ...rest } = view;
      return { ...rest, qr };
    }
    case 'show_code':
      return { ...view, code: step.code };
    case 'progress':
      return { ...view, progress: step.text };
    case 'done':
    case 'failed':
      return {};
  }
}
