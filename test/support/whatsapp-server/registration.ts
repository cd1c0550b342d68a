// A client without an account: it is offered QR references, may ask for pairing by code, and is
// paired when a phone says so. The phone's secrets come from the people.

import { randomBytes } from 'node:crypto';
import {
  type BinaryNode,
  getBinaryNodeChild,
  getBinaryNodeChildBuffer,
  S_WHATSAPP_NET,
} from '@whiskeysockets/baileys';
import type { LinkedAccount } from './account.ts';
import { failedResult, result, seconds } from './answers.ts';
import { CodePairing, type PhoneIdentity } from './code-pairing.ts';
import type { Connection, Session } from './connection.ts';
import { DeviceIdentity } from './device-identity.ts';
import type { ClientHello } from './noise-responder.ts';
import { isSignedPreKey } from './pre-keys.ts';
import type { QrText } from './qr-text.ts';
import type { LinkedDevice, Plumbing } from './seams.ts';

const REFERENCES = 6;
const EMPTY = new Uint8Array();

export type RegistrationDeps = {
  readonly plumbing: Plumbing;
  account(user: string): LinkedAccount | undefined;
  identity(account: LinkedAccount): PhoneIdentity;
  /** The device signed: the phone prepares its first sync. */
  paired(account: LinkedAccount): Promise<void>;
};

/** What a client wants to be linked as. */
type Applicant = Pick<LinkedDevice, 'noiseKey' | 'identityKey' | 'registrationId' | 'signedPreKey'>;

type CodeRequest = { readonly account: LinkedAccount; readonly wrappedEphemeral: Uint8Array };
type CodeAnswer = { readonly bundle: Uint8Array; readonly identity: Uint8Array };

export class Registration implements Session {
  readonly references: readonly string[];
  readonly connection: Connection;
  readonly #deps: RegistrationDeps;
  readonly #applicant: Applicant;
  readonly #offerId: string;
  readonly #gone = Promise.withResolvers<never>();
  #codeRequest: CodeRequest | undefined;
  #codeAnswer = Promise.withResolvers<CodeAnswer>();
  #signature = Promise.withResolvers<BinaryNode>();
  #isOpen = true;

  /** @throws where the client's keys are not in order */
  constructor(deps: RegistrationDeps, connection: Connection, hello: ClientHello) {
    this.#deps = deps;
    this.connection = connection;
    this.#applicant = applicantOf(hello);
    this.references = Array.from({ length: REFERENCES }, () => randomBytes(16).toString('base64'));
    this.#offerId = deps.plumbing.stanzaId();
    // Nobody may be waiting when the client leaves.
    this.#gone.promise.catch(() => undefined);
    void connection.send({
      tag: 'iq',
      attrs: { id: this.#offerId, from: S_WHATSAPP_NET, type: 'set', xmlns: 'md' },
      content: [{ tag: 'pair-device', attrs: {}, content: this.references.map(refNode) }],
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The account whose phone was asked for a code. */
  get asksFor(): LinkedAccount | undefined {
    return this.#codeRequest?.account;
  }

  /** @throws where the QR shows other keys than this client has, or it left before it signed */
  async scanned(account: LinkedAccount, qr: QrText): Promise<void> {
    if (
      Buffer.compare(qr.noiseKey, this.#applicant.noiseKey) !== 0 ||
      Buffer.compare(qr.identityKey, this.#applicant.identityKey) !== 0
    ) {
      throw new Error('the QR code shows other keys than the client has');
    }
    await this.#pair(account, qr.advSecret);
  }

  /** @throws WrongCode, or where the client left before it signed */
  async codeTyped(code: string): Promise<void> {
    const request = this.#codeRequest;
    if (request === undefined) throw new Error('the client asked for no code');
    const identity = this.#deps.identity(request.account);
    const pairing = await CodePairing.begin(identity, code, request.wrappedEphemeral);
    this.#codeAnswer = Promise.withResolvers();
    void this.connection.send(this.#primaryHello(await pairing.wrapped(), identity.public));
    const answer = await Promise.race([this.#codeAnswer.promise, this.#gone.promise]);
    if (Buffer.compare(answer.identity, this.#applicant.identityKey) !== 0) {
      throw new Error('the client finished with another identity than it registered with');
    }
    await this.#pair(request.account, pairing.advSecret(answer.bundle, answer.identity));
  }

  nack(): void {}

  ended(): void {
    this.#isOpen = false;
    this.#gone.reject(new Error('the client left before the device had signed'));
  }

  closed(): void {}

  async take(stanza: BinaryNode): Promise<boolean> {
    const { tag, attrs } = stanza;
    if (tag === 'ib' || tag === 'presence' || tag === 'ack') return true;
    if (tag !== 'iq') return false;
    if (attrs['type'] === 'result') return this.#takeResult(stanza);
    if (attrs['xmlns'] === 'w:p') {
      await this.connection.send(result(stanza));
      return true;
    }
    if (attrs['xmlns'] !== 'md') return false;
    if (getBinaryNodeChild(stanza, 'remove-companion-device') !== undefined) {
      await this.connection.send(result(stanza));
      return true;
    }
    const request = getBinaryNodeChild(stanza, 'link_code_companion_reg');
    return request !== undefined && this.#takeCodeStage(stanza, request);
  }

  #takeResult(stanza: BinaryNode): boolean {
    const signed = getBinaryNodeChild(stanza, 'pair-device-sign');
    if (signed !== undefined) this.#signature.resolve(signed);
    return signed !== undefined || stanza.attrs['id'] === this.#offerId;
  }

  async #takeCodeStage(stanza: BinaryNode, request: BinaryNode): Promise<boolean> {
    if (request.attrs['stage'] === 'companion_finish') {
      const bundle = getBinaryNodeChildBuffer(request, 'link_code_pairing_wrapped_key_bundle');
      const identity = getBinaryNodeChildBuffer(request, 'companion_identity_public');
      if (bundle === undefined || identity === undefined) return false;
      await this.connection.send(result(stanza));
      this.#codeAnswer.resolve({ bundle, identity });
      return true;
    }
    const wrapped = 'link_code_pairing_wrapped_companion_ephemeral_pub';
    const wrappedEphemeral = getBinaryNodeChildBuffer(request, wrapped);
    if (request.attrs['stage'] !== 'companion_hello' || wrappedEphemeral === undefined)
      return false;
    const account = this.#deps.account((request.attrs['jid'] ?? '').split('@')[0] ?? '');
    if (account === undefined) {
      await this.connection.send(failedResult(stanza, 404, 'item-not-found'));
      return true;
    }
    this.#codeRequest = { account, wrappedEphemeral };
    const content = [{ tag: 'link_code_pairing_ref', attrs: {}, content: this.#codeReference() }];
    const stage = { stage: 'companion_hello' };
    await this.connection.send(
      result(stanza, [{ tag: 'link_code_companion_reg', attrs: stage, content }]),
    );
    account.changed();
    return true;
  }

  #codeReference(): Buffer {
    return Buffer.from(this.references.at(-1) ?? '');
  }

  #primaryHello(wrapped: Uint8Array, identity: Uint8Array): BinaryNode {
    const { plumbing } = this.#deps;
    const parts = [
      ['link_code_pairing_wrapped_primary_ephemeral_pub', wrapped],
      ['primary_identity_pub', Buffer.from(identity)],
      ['link_code_pairing_ref', this.#codeReference()],
    ] as const;
    return {
      tag: 'notification',
      attrs: {
        id: plumbing.stanzaId(),
        from: S_WHATSAPP_NET,
        type: 'link_code_companion_reg',
        t: seconds(plumbing.now()),
      },
      content: [
        {
          tag: 'link_code_companion_reg',
          attrs: { stage: 'primary_hello' },
          content: parts.map(([tag, content]) => ({ tag, attrs: {}, content })),
        },
      ],
    };
  }

  async #pair(account: LinkedAccount, advSecret: Uint8Array): Promise<void> {
    const identity = this.#deps.identity(account);
    const id = account.nextDevice();
    const device: LinkedDevice = {
      ...this.#applicant,
      id,
      jid: `${account.number}:${id}@s.whatsapp.net`,
      lidJid: `${account.lid}:${id}@lid`,
      preKeys: new Map(),
    };
    const deviceIdentity = new DeviceIdentity(identity, device, this.#deps.plumbing.now());
    this.#signature = Promise.withResolvers();
    void this.connection.send(this.#pairSuccess(device, deviceIdentity.sealed(advSecret)));
    const signed = await Promise.race([this.#signature.promise, this.#gone.promise]);
    if (!deviceIdentity.isSignedBack(getBinaryNodeChildBuffer(signed, 'device-identity'))) {
      throw new Error('the device did not sign as it should');
    }
    for (const former of account.sockets) await former.end({ kind: 'stream_error', code: 401 });
    account.link(device);
    await this.#deps.paired(account);
    await this.connection.end({ kind: 'stream_error', code: 515 });
  }

  #pairSuccess(device: LinkedDevice, sealed: Uint8Array): BinaryNode {
    const { plumbing } = this.#deps;
    const t = seconds(plumbing.now());
    const content: BinaryNode[] = [
      { tag: 'device-identity', attrs: {}, content: sealed },
      { tag: 'device', attrs: { jid: device.jid, lid: device.lidJid } },
      { tag: 'platform', attrs: { name: 'android' } },
    ];
    return {
      tag: 'iq',
      attrs: { id: plumbing.stanzaId(), from: S_WHATSAPP_NET, type: 'set', xmlns: 'md', t },
      content: [{ tag: 'pair-success', attrs: {}, content }],
    };
  }
}

function applicantOf({ payload, noiseKey }: ClientHello): Applicant {
  const data = payload.devicePairingData;
  const identityKey = data?.eIdent ?? EMPTY;
  const key = data?.eSkeyVal ?? EMPTY;
  const signature = data?.eSkeySig ?? EMPTY;
  if (!isSignedPreKey(identityKey, key, signature)) {
    throw new Error('a registration whose signed pre-key is not signed by its identity');
  }
  return {
    noiseKey,
    identityKey,
    registrationId: Buffer.from(data?.eRegid ?? EMPTY).readUIntBE(0, 4),
    signedPreKey: { id: Buffer.from(data?.eSkeyId ?? EMPTY).readUIntBE(0, 3), key, signature },
  };
}

function refNode(reference: string): BinaryNode {
  return { tag: 'ref', attrs: {}, content: Buffer.from(reference) };
}
