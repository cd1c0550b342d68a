// An IMAP server that misbehaves on purpose: it has one mail, and says what no honest server says.
// Knows only the commands the channel uses; anything else fails the test by BAD.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { portOf } from './listening.ts';

export type ScriptedImap = AsyncDisposable & {
  readonly port: number;
  /** Every command line received, without its tag. */
  readonly commands: readonly string[];
};

export type ScriptedImapOptions = {
  /** Capabilities; STARTTLS is never among them. */
  readonly capabilities?: string;
  /** In ASCII. */
  readonly mail: string;
  /** How a full body fetch is answered. */
  readonly body: 'whole' | 'missing' | 'in two pieces' | 'never';
  /** Speaks TLS from the first byte; PEM. */
  readonly tls?: { readonly key: string; readonly cert: string };
};

export async function startScriptedImap(options: ScriptedImapOptions): Promise<ScriptedImap> {
  const commands: string[] = [];
  const sockets = new Set<Socket>();
  const serve = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.write('* OK scripted server\r\n');
    converse(socket, options, commands);
  };
  const server = options.tls ? createTlsServer(options.tls, serve) : createServer(serve);
  const port = await portOf(server);
  return {
    port,
    commands,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

function converse(socket: Socket, options: ScriptedImapOptions, commands: string[]): void {
  let rest = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    const lines = `${rest}${chunk}`.split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) answer(socket, options, commands, line);
  });
}

function answer(
  socket: Socket,
  options: ScriptedImapOptions,
  commands: string[],
  line: string,
): void {
  if (line === 'DONE') return;
  const [, tag = '', command = ''] = /^(\S+) (.*)$/.exec(line) ?? [];
  commands.push(command);
  const untagged = untaggedFor(command, options);
  if (untagged === undefined) return;
  const verdict = untagged === 'BAD' ? 'BAD unknown command' : 'OK done';
  const lines = untagged === 'BAD' ? '' : untagged;
  socket.write(`${lines}${tag} ${verdict}\r\n`);
}

/** The lines before the tagged OK; undefined: no answer at all. */
function untaggedFor(command: string, options: ScriptedImapOptions): string | undefined {
  const verb = command.replace(/^UID /, '').split(' ', 1)[0] ?? '';
  switch (verb) {
    case 'CAPABILITY':
      return `* CAPABILITY ${options.capabilities ?? 'IMAP4rev1'}\r\n`;
    case 'EXAMINE':
      return '* FLAGS ()\r\n* 1 EXISTS\r\n* OK [UIDVALIDITY 7] v\r\n* OK [UIDNEXT 2] n\r\n';
    case 'SEARCH':
      return '* SEARCH 1\r\n';
    case 'FETCH':
      return fetched(command, options);
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
      return 'BAD';
  }
}

function fetched(command: string, { mail, body }: ScriptedImapOptions): string | undefined {
  const literal = (text: string) => `{${Buffer.byteLength(text)}}\r\n${text}`;
  const [header = '', text = ''] = mail.split(/(?<=\r\n\r\n)/, 2);
  if (command.includes('HEADER.FIELDS')) {
    const size = Buffer.byteLength(mail);
    const ids = literal('Message-ID: <scripted@person.test>\r\n\r\n');
    const section = /BODY\.PEEK(\[HEADER\.FIELDS [^\]]*\])/.exec(command)?.[1] ?? '';
    const date = '"15-Jan-2026 12:00:00 +0000"';
    return `* 1 FETCH (UID 1 RFC822.SIZE ${size} INTERNALDATE ${date} BODY${section} ${ids})\r\n`;
  }
  if (command.includes('BODY.PEEK[HEADER]<') && body === 'whole') {
    return `* 1 FETCH (UID 1 BODY[HEADER]<0> ${literal(header)})\r\n`;
  }
  if (!command.includes('BODY.PEEK[]')) {
    if (body !== 'in two pieces') return '* 1 FETCH (UID 1)\r\n';
    return `* 1 FETCH (UID 1 BODY[HEADER] ${literal(header)} BODY[TEXT] ${literal(text)})\r\n`;
  }
  if (body === 'never') return undefined;
  if (body !== 'whole') return '';
  const [, start, count] = /BODY\.PEEK\[\]<(\d+)\.(\d+)>/.exec(command) ?? [];
  const piece = mail.slice(Number(start), Number(start) + Number(count));
  const size = Buffer.byteLength(mail);
  return `* 1 FETCH (UID 1 RFC822.SIZE ${size} BODY[]<${start}> ${literal(piece)})\r\n`;
}
