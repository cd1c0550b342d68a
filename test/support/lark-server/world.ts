// People, chats, messages and files of the simulated Lark.

import type { LarkChat, LarkMessage, LarkPerson } from './contract.ts';

export type Made = {
  readonly name: string;
  readonly content: Buffer;
  /** `image`, or the file type it was uploaded as; undefined for what people send. */
  readonly kind?: string;
};

/** What Lark shows of a JSON 2.0 card to a program that does not ask for the card as it was sent. */
const CARD_PLACEHOLDER = {
  title: null,
  elements: [
    [
      { tag: 'img', image_key: 'img_placeholder' },
      { tag: 'text', text: '请升级至最新版本客户端，以查看内容' },
    ],
  ],
};

export class World {
  readonly people = new Map<string, LarkPerson>();
  readonly chats = new Map<string, LarkChat>();
  readonly messages = new Map<string, LarkMessage>();
  readonly files = new Map<string, Made>();
  readonly #directs = new Map<string, LarkChat>();
  #count = 0;

  id(prefix: string): string {
    this.#count += 1;
    return `${prefix}${this.#count.toString(16).padStart(8, '0')}`;
  }

  person(name: string): LarkPerson {
    const found = [...this.people.values()].find((one) => one.name === name);
    if (found !== undefined) return found;
    const person = { openId: this.id('ou_'), unionId: this.id('on_'), name };
    this.people.set(person.openId, person);
    return person;
  }

  direct(person: LarkPerson): LarkChat {
    const chat = this.#directs.get(person.openId) ?? this.chat('p2p', '');
    this.#directs.set(person.openId, chat);
    return chat;
  }

  chat(kind: LarkChat['kind'], title: string): LarkChat {
    const chat: LarkChat = { id: this.id('oc_'), kind, title };
    this.chats.set(chat.id, chat);
    return chat;
  }

  add(
    fields: Pick<LarkMessage, 'chat' | 'from' | 'type' | 'content'> & Partial<LarkMessage>,
  ): LarkMessage {
    const message: LarkMessage = {
      id: this.id('om_'),
      isDeleted: false,
      createdAt: Date.now(),
      mentions: [],
      reactions: [],
      ...fields,
    };
    this.messages.set(message.id, message);
    return message;
  }

  file(prefix: string, name: string, content: Buffer, kind?: string): string {
    const key = this.id(prefix);
    this.files.set(key, { name, content, ...(kind === undefined ? {} : { kind }) });
    return key;
  }

  /** As `im/v1/messages/:id` shows it; `cardType`: its parameter `card_msg_content_type`. */
  shown(message: LarkMessage, appId: string, cardType: string | null): unknown {
    const isBot = message.from === 'bot';
    return {
      message_id: message.id,
      root_id: message.root,
      parent_id: message.parent,
      thread_id: message.thread,
      msg_type: message.type,
      create_time: String(message.createdAt),
      deleted: message.isDeleted,
      chat_id: message.chat,
      sender: {
        id: isBot ? appId : message.from,
        id_type: isBot ? 'app_id' : 'open_id',
        sender_type: isBot ? 'app' : 'user',
      },
      body: { content: contentShown(message, cardType) },
      mentions: message.mentions.map((mention) => {
        const { id, ...rest } = mention as { id: { open_id: string } };
        return { ...rest, id: id.open_id };
      }),
    };
  }
}

function contentShown({ type, content }: LarkMessage, cardType: string | null): string {
  const isNewCard = type === 'interactive' && JSON.parse(content).schema === '2.0';
  if (!isNewCard) return content;
  const asSent = cardType === 'user_card_content' ? { user_dsl: content } : {};
  return JSON.stringify({ ...CARD_PLACEHOLDER, ...asSent });
}
