// What a login shows at one moment, as lines: the QR code, the code to type beside or below it, and
// how far things are. Pure; the screen decides where the lines go.

import { type QrMatrix, qrTerminalLines, qrTerminalSize } from '../../lib/qr-code.ts';

/** How a person uses what is shown, in the words of the platform. */
export type LoginWords = {
  readonly scan: string;
  readonly type: string;
};

export type LoginView = {
  readonly qr?: QrMatrix;
  readonly code?: string;
  readonly progress?: string;
};

export type Room = { readonly columns: number; readonly rows: number };

export type LoginLook = {
  readonly words: LoginWords;
  /** Undefined where nothing limits it, as in a file. */
  readonly room: Room | undefined;
  readonly colors: boolean;
  readonly bold: (text: string) => string;
};

const GAP = 3;
const SIDE_COLUMNS = 36;
/** Lines that must fit below the code, the cursor's own among them. */
const LINES_BELOW = 2;

export function loginLines(view: LoginView, look: LoginLook): readonly string[] {
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

/** Eight characters as WhatsApp's own app groups them. */
function spacedCode(code: string): string {
  return code.length === 8 ? `${code.slice(0, 4)}-${code.slice(4)}` : code;
}

function fits(size: Room, room: Room): boolean {
  return size.columns < room.columns && size.rows + LINES_BELOW < room.rows;
}

function tooSmall(size: Room, room: Room): readonly string[] {
  const needed = `${size.columns + 1} columns and ${size.rows + LINES_BELOW + 1} rows`;
  return [
    `The QR code needs a window of ${needed}; this one has ${room.columns} and ${room.rows}.`,
    'Make it larger, or its letters smaller: the code appears by itself.',
  ];
}

const widthBelow = (room: Room | undefined) => room?.columns ?? 80;

function textOf(view: LoginView, { words, bold }: LoginLook, width: number): readonly string[] {
  const { qr, code, progress } = view;
  const scan = qr === undefined ? [] : wrapped(words.scan, width);
  const type =
    code === undefined ? [] : [...wrapped(words.type, width), `  ${bold(spacedCode(code))}`];
  const far = progress === undefined ? [] : wrapped(progress, width);
  return [scan, type, far]
    .filter((part) => part.length > 0)
    .flatMap((part, index) => {
      return index === 0 ? part : ['', ...part];
    });
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
