// A small honest mail server for tests that need many mails and neither Dovecot nor Postfix: one IMAP
// mailbox that a test drops mails into, and an SMTP server that takes everything but what a test has it
// refuse.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { portOf } from './listening.ts';

export interface MailBox extends AsyncDisposable {
  readonly imapPort: number;
  readonly smtpPort: number;
  /** What the SMTP server took, whole mails. */
  readonly sent: readonly string[];
  /** From now on the SMTP server refuses for good each mail that holds this. */
  refuse(like: RegExp): void;
  /** A mail, lines ended by CRLF, lies in the mailbox from now on. */
  drop(mail: string): void;
  /** Resolves when somebody waits for mail. */
  readonly followed: Promise<void>;
  /** The words that mails were searched for so far. */
  readonly searches: readonly string[];
}

export async function startMailBox(): Promise<MailBox> {
  const box = new Box();
  const sent: string[] = [];
  const refused: RegExp[] = [];
  const sockets = new Set<Socket>();
  const open = async (converse: (socket: Socket) => void) => {
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
      converse(socket);
    });
    return { server, port: await portOf(server) };
  };
  const imap = await open((socket) => box.converse(socket));
  const smtp = await open((socket) => takeMails(socket, sent, refused));
  return {
    imapPort: imap.port,
    smtpPort: smtp.port,
    sent,
    refuse: (like) => void refused.push(like),
    drop: (mail) => box.drop(mail),
    followed: box.followed.promise,
    searches: box.searches,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      for (const { server } of [imap, smtp]) {
        server.close();
        await once(server, 'close');
      }
    },
  };
}

const literal = (text: string) => `{${Buffer.byteLength(text)}}\r\n${text}`;

/** Mail n has UID n. */
class Box {
  readonly #mails: string[] = [];
  readonly followed = Promise.withResolvers<void>();
  readonly searches: string[] = [];
  readonly #idling = new Set<Socket>();

  drop(mail: string): void {
    this.#mails.push(mail);
    for (const socket of this.#idling) socket.write(`* ${this.#mails.length} EXISTS\r\n`);
  }

  converse(socket: Socket): void {
    let rest = '';
    let idleTag = '';
    socket.write('* OK ready\r\n');
    socket.on('close', () => this.#idling.delete(socket));
    socket.setEncoding('utf8').on('data', (chunk) => {
      const lines = `${rest}${chunk}`.split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const [, tag = '', command = ''] = /^(\S+) ?(.*)$/.exec(line) ?? [];
        if (tag === 'DONE') {
          this.#idling.delete(socket);
          socket.write(`${idleTag} OK done\r\n`);
        } else if (command === 'IDLE') {
          idleTag = tag;
          this.#idling.add(socket);
          this.followed.resolve();
          socket.write(`+ idling\r\n* ${this.#mails.length} EXISTS\r\n`);
        } else {
          const untagged = this.#answer(command);
          socket.write(
            untagged === undefined ? `${tag} BAD unknown\r\n` : `${untagged}${tag} OK done\r\n`,
          );
        }
      }
    });
  }

  #answer(command: string): string | undefined {
    const verb = command.replace(/^UID /, '').split(' ', 1)[0] ?? '';
    const count = this.#mails.length;
    switch (verb) {
      case 'CAPABILITY':
        return '* CAPABILITY IMAP4rev1 IDLE\r\n';
      case 'EXAMINE':
        return `* FLAGS ()\r\n* ${count} EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT ${count + 1}] n\r\n`;
      case 'SEARCH':
        return `* SEARCH ${this.#found(command).join(' ')}\r\n`.replace(' \r', '\r');
      case 'FETCH':
        return this.#uids(command)
          .map((uid) => this.#fetched(uid, command))
          .join('');
      case 'LIST':
      case 'LSUB':
        return `* ${verb} () "/" INBOX\r\n`;
      case 'LOGIN':
      case 'LOGOUT':
      case 'NAMESPACE':
      case 'NOOP':
      case 'ID':
        return '';
      default:
        return undefined;
    }
  }

  /** By a set of UIDs, by a word in the text, or all. */
  #found(command: string): readonly number[] {
    const word = /\bTEXT "?([^"\s]+)/.exec(command)?.[1];
    if (word !== undefined) this.searches.push(word);
    if (word === undefined && !/\bALL\b/.test(command)) return this.#uids(command);
    return this.#mails.flatMap((mail, at) => (mail.includes(word ?? '') ? [at + 1] : []));
  }

  /** `5`, `1:3,7` and `4:*`. */
  #uids(command: string): readonly number[] {
    const set = /\b(\d[\d:*,]*)/.exec(command.replace(/^UID (?:SEARCH|FETCH)/, ''))?.[1] ?? '';
    const count = this.#mails.length;
    return set.split(',').flatMap((range) => {
      const [from = '', to = from] = range.split(':');
      const end = to === '*' ? count : Number(to);
      const first = Math.min(Number(from), Math.max(end, 1));
      return Array.from({ length: Math.max(0, end - first + 1) }, (_, at) => first + at).filter(
        (uid) => uid >= 1 && uid <= count,
      );
    });
  }

  #fetched(uid: number, command: string): string {
    const mail = this.#mails[uid - 1] ?? '';
    const parts = [`UID ${uid}`, `RFC822.SIZE ${Buffer.byteLength(mail)}`];
    parts.push(`INTERNALDATE "${internalDate()}"`);
    const section = /BODY\.PEEK(\[HEADER\.FIELDS [^\]]*\])/.exec(command)?.[1];
    if (section !== undefined) {
      const id = /^Message-ID: .*\r\n/im.exec(mail)?.[0] ?? '';
      parts.push(`BODY${section} ${literal(`${id}\r\n`)}`);
    }
    if (command.includes('BODY.PEEK[]')) parts.push(`BODY[] ${literal(mail)}`);
    return `* ${uid} FETCH (${parts.join(' ')})\r\n`;
  }
}

/** `15-Jan-2026 12:00:00 +0000`, now. */
function internalDate(): string {
  const [, day, month, year, time] =
    /^\w+, (\d+) (\w+) (\d+) (\S+)/.exec(new Date().toUTCString()) ?? [];
  return `${day}-${month}-${year} ${time} +0000`;
}

function takeMails(socket: Socket, sent: string[], refused: readonly RegExp[]): void {
  let text = '';
  let isData = false;
  socket.write('220 hello\r\n');
  socket.on('data', (chunk) => {
    const line = chunk.toString();
    if (!isData) {
      isData = line.startsWith('DATA');
      socket.write(isData ? '354 go on\r\n' : '250 ok\r\n');
      return;
    }
    text += line;
    if (!text.endsWith('\r\n.\r\n')) return;
    const isRefused = refused.some((like) => like.test(text));
    if (!isRefused) sent.push(text);
    text = '';
    isData = false;
    socket.write(isRefused ? '554 5.7.1 content refused\r\n' : '250 taken\r\n');
  });
}
