// What tests may do with the simulated Lark, and what they can see.

export type LarkPerson = {
  readonly openId: string;
  readonly unionId: string;
  readonly name: string;
};
export type LarkChat = {
  readonly id: string;
  readonly kind: 'p2p' | 'group' | 'topic';
  readonly title: string;
};

export type LarkMessage = {
  readonly id: string;
  readonly chat: string;
  readonly thread?: string;
  /** `bot`, or an open_id. */
  readonly from: string;
  type: string;
  content: string;
  readonly parent?: string;
  readonly root?: string;
  isDeleted: boolean;
  readonly uuid?: string;
  readonly createdAt: number;
  readonly mentions: readonly unknown[];
  readonly reactions: { readonly id: string; readonly type: string; readonly by: string }[];
};

export type LarkFault = {
  readonly method?: string;
  /** Tried against the path behind `/open-apis/`, or `endpoint`. */
  readonly path: RegExp;
  readonly effect:
    | {
        readonly kind: 'error';
        readonly status: number;
        readonly code: number;
        readonly headers?: Readonly<Record<string, string>>;
      }
    /** The connection is reset; `after`: the call was carried out. */
    | { readonly kind: 'drop'; readonly stage: 'before' | 'after' }
    /** The call is carried out, and its answer never comes. */
    | { readonly kind: 'hang' };
  /** How many matching calls are hit; default 1. */
  readonly times?: number;
};

export type Saying = {
  readonly chat?: string;
  readonly type?: string;
  readonly content?: unknown;
  readonly mentionsBot?: boolean;
  readonly mentions?: readonly LarkPerson[];
  readonly parent?: string;
  readonly root?: string;
  readonly thread?: string;
  readonly createdAt?: number;
  readonly senderType?: string;
};

export type LarkCall = { readonly method: string; readonly path: string; readonly body: unknown };

export interface LarkServer extends AsyncDisposable {
  readonly url: string;
  readonly appId: string;
  readonly appSecret: string;
  readonly botId: string;
  /** What no program may do here: unknown calls, bad frames, cards Lark would refuse. */
  readonly violations: string[];
  readonly calls: readonly LarkCall[];
  /** Bytes that must show up in no log: secret, tokens, tickets. */
  readonly secrets: readonly string[];
  readonly connections: number;
  /** Events whose receipt was good. */
  readonly acknowledged: readonly string[];
  /** Receipts that said no. */
  readonly refusals: number;
  person(name: string): LarkPerson;
  /** The chat of the person with the bot. */
  direct(person: LarkPerson): LarkChat;
  group(title: string, kind?: 'group' | 'topic'): LarkChat;
  /** Returns the id of the message. */
  say(person: LarkPerson, text: string, saying?: Saying): string;
  event(type: string, event: unknown, header?: object): string;
  /** Presses the newest button of that label in the chat. @returns what the person is shown */
  press(person: LarkPerson, chat: LarkChat, label: string): Promise<unknown>;
  react(person: LarkPerson, message: string, type: string, isTakenBack?: boolean): void;
  recall(message: string): void;
  /** From the bot and still there, oldest first. */
  seen(chat: LarkChat): readonly LarkMessage[];
  textOf(message: LarkMessage): string;
  fileOf(message: LarkMessage): { readonly name: string; readonly content: Buffer } | undefined;
  message(id: string): LarkMessage;
  /** What people send with a message. */
  store(content: Buffer): string;
  fault(fault: LarkFault): void;
  dropConnections(): void;
  /** New connections are refused while false. */
  isOpen: boolean;
  /** Sends what waits along with the handshake instead of after the first ping. */
  isHasty: boolean;
  /** How often a connection opened from now on pings. */
  pingSecs: number;
  /** Takes pings and says nothing. */
  isDeaf: boolean;
  readonly pings: number;
  /** Into how many frames an event is cut. */
  chunks: number;
  /** Sends again what was not acknowledged. */
  redeliver(): void;
  /** Raw bytes over the connection. */
  raw(bytes: Uint8Array): void;
  revokeTokens(): void;
  until<T>(look: () => T | undefined | false, timeoutMs?: number): Promise<T>;
}
