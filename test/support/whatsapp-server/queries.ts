// What a logged-in device asks of the server itself, answered as for an account with nothing
// special: properties, block list, privacy, app state, devices and keys of people.

import {
  type BinaryNode,
  getAllBinaryNodeChildren,
  getBinaryNodeChild,
  getBinaryNodeChildren,
  jidDecode,
} from '@whiskeysockets/baileys';
import { result } from './answers.ts';
import type { Directory, KeyBundle, Plumbing, StanzaHandler } from './seams.ts';

const PRIVACY = {
  last: 'all',
  online: 'all',
  profile: 'all',
  readreceipts: 'all',
  groupadd: 'all',
};
const PROPERTIES_HASH = 'loopback-1';

type Answer = (iq: BinaryNode) => Promise<BinaryNode | undefined>;

type Person = NonNullable<ReturnType<Directory['find']>>;
type LookUp = (user: string) => Person | undefined;

export function queryHandlers(directory: Directory, plumbing: Plumbing): readonly StanzaHandler[] {
  const lookUp: LookUp = (user) => {
    const person = directory.find(user);
    const linked = plumbing.account(user)?.device;
    if (person === undefined || linked === undefined) return person;
    return { ...person, devices: [...person.devices, linked.id] };
  };
  const answers: Readonly<Record<string, Answer>> = {
    'get w:p': async (iq) => result(iq),
    'get abt': async (iq) => result(iq, [properties()]),
    'get blocklist': async (iq) => result(iq, [{ tag: 'list', attrs: {} }]),
    'get privacy': async (iq) => result(iq, [privacy()]),
    // Trusted contact tokens: taken note of, with no effect.
    'set privacy': async (iq) => (hasChild(iq, 'tokens') ? result(iq) : undefined),
    'set w:sync:app:state': async (iq) => appState(iq),
    'set urn:xmpp:whatsapp:dirty': async (iq) => result(iq),
    'get w:mex': async (iq) => result(iq, [standing()]),
    'get usync': async (iq) => usync(iq, lookUp),
    'get encrypt': async (iq) => (hasChild(iq, 'key') ? keys(iq, directory) : undefined),
  };
  return [
    async (stanza, from) => {
      if (stanza.tag !== 'iq') return false;
      const answer = answers[`${stanza.attrs['type']} ${stanza.attrs['xmlns']}`];
      const answered = await answer?.(stanza);
      if (answered === undefined) return false;
      await from.send(answered);
      return true;
    },
    async ({ tag }) => tag === 'presence',
    async (stanza) =>
      stanza.tag === 'ib' &&
      (hasChild(stanza, 'unified_session') || hasChild(stanza, 'offline_batch')),
    async ({ tag, attrs }, from) => {
      if (tag !== 'ack') return false;
      from.account.settle(attrs['class'] ?? '', attrs['id'] ?? '');
      return true;
    },
  ];
}

function hasChild(stanza: BinaryNode, tag: string): boolean {
  return getBinaryNodeChild(stanza, tag) !== undefined;
}

function properties(): BinaryNode {
  return { tag: 'props', attrs: { protocol: '1', hash: PROPERTIES_HASH } };
}

function privacy(): BinaryNode {
  const content = Object.entries(PRIVACY).map(([name, value]) => ({
    tag: 'category',
    attrs: { name, value },
  }));
  return { tag: 'privacy', attrs: {}, content };
}

/** What a client asks after a refused message: the account is not restricted. */
function standing(): BinaryNode {
  const data = { xwa2_fetch_account_reachout_timelock: { is_active: false } };
  return { tag: 'result', attrs: {}, content: Buffer.from(JSON.stringify({ data })) };
}

/** Nothing ever changed elsewhere; what the device changes makes the next version. */
function appState(iq: BinaryNode): BinaryNode | undefined {
  const sync = getBinaryNodeChild(iq, 'sync');
  if (sync === undefined) return undefined;
  const content = getBinaryNodeChildren(sync, 'collection').map((asked) => {
    const version = Number(asked.attrs['version'] ?? '0') + (hasChild(asked, 'patch') ? 1 : 0);
    const name = asked.attrs['name'] ?? '';
    return {
      tag: 'collection',
      attrs: { name, version: String(version), has_more_patches: 'false' },
    };
  });
  return result(iq, [{ tag: 'sync', attrs: {}, content }]);
}

const USYNC_PROTOCOLS = ['devices', 'lid', 'contact'];

function usync(iq: BinaryNode, lookUp: LookUp): BinaryNode | undefined {
  const asked = getBinaryNodeChild(iq, 'usync');
  const protocols = getAllBinaryNodeChildren(getBinaryNodeChild(asked, 'query') ?? iq).map(
    ({ tag }) => tag,
  );
  if (asked === undefined || !protocols.every((name) => USYNC_PROTOCOLS.includes(name))) {
    return undefined;
  }
  const users = getBinaryNodeChildren(getBinaryNodeChild(asked, 'list'), 'user');
  const list = {
    tag: 'list',
    attrs: {},
    content: users.map((u) => userNode(u, protocols, lookUp)),
  };
  const { sid = '', mode = '', context = '' } = asked.attrs;
  const attrs = { sid, mode, context, index: '0', last: 'true' };
  return result(iq, [{ tag: 'usync', attrs, content: [list] }]);
}

/** Somebody unknown has no devices and no LID. */
function userNode(asked: BinaryNode, protocols: readonly string[], lookUp: LookUp): BinaryNode {
  const phone = getBinaryNodeChild(asked, 'contact')?.content?.toString();
  const digits = phone?.replace(/\D/g, '');
  const jid = asked.attrs['jid'] ?? `${digits}@s.whatsapp.net`;
  const decoded = jidDecode(jid);
  const person = lookUp(decoded?.user ?? '');
  const parts: Readonly<Record<string, BinaryNode | undefined>> = {
    contact: { tag: 'contact', attrs: { type: person === undefined ? 'out' : 'in' } },
    devices: person === undefined ? undefined : devicesNode(person),
    lid:
      person === undefined || decoded?.server === 'lid'
        ? undefined
        : { tag: 'lid', attrs: { val: `${person.lid}@lid` } },
  };
  const content = protocols.flatMap((name) => parts[name] ?? []);
  return { tag: 'user', attrs: { jid }, content };
}

function devicesNode({ devices }: Person): BinaryNode {
  const content = devices.map((id) => ({
    tag: 'device',
    // The client skips linked devices without an index.
    attrs: { id: String(id), ...(id === 0 ? {} : { 'key-index': String(id) }) },
  }));
  return { tag: 'devices', attrs: {}, content: [{ tag: 'device-list', attrs: {}, content }] };
}

async function keys(iq: BinaryNode, directory: Directory): Promise<BinaryNode> {
  const asked = getBinaryNodeChildren(getBinaryNodeChild(iq, 'key'), 'user');
  const users: BinaryNode[] = [];
  for (const { attrs } of asked) {
    const jid = attrs['jid'] ?? '';
    const decoded = jidDecode(jid);
    const bundle = await directory.keyBundle(decoded?.user ?? '', decoded?.device ?? 0);
    users.push({
      tag: 'user',
      attrs: { jid },
      content: bundle === undefined ? [NO_KEYS] : bundleNodes(bundle),
    });
  }
  return result(iq, [{ tag: 'list', attrs: {}, content: users }]);
}

const NO_KEYS: BinaryNode = { tag: 'error', attrs: { code: '404', text: 'item-not-found' } };

function bundleNodes(bundle: KeyBundle): BinaryNode[] {
  const { signedPreKey, preKey } = bundle;
  const signature = { tag: 'signature', attrs: {}, content: signedPreKey.signature };
  return [
    { tag: 'registration', attrs: {}, content: bigEndian(bundle.registrationId, 4) },
    { tag: 'type', attrs: {}, content: Buffer.from([5]) },
    { tag: 'identity', attrs: {}, content: bundle.identityKey },
    { tag: 'skey', attrs: {}, content: [...keyNodes(signedPreKey), signature] },
    ...(preKey === undefined ? [] : [{ tag: 'key', attrs: {}, content: keyNodes(preKey) }]),
  ];
}

function keyNodes({ id, key }: { readonly id: number; readonly key: Uint8Array }): BinaryNode[] {
  return [
    { tag: 'id', attrs: {}, content: bigEndian(id, 3) },
    { tag: 'value', attrs: {}, content: key },
  ];
}

function bigEndian(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}
